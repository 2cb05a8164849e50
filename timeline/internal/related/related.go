// Package related finds the objects related to an object at an instant: its owners, the objects that it owns, and the Events
// about it.
//
// It is a separate request, because it reads all lives of a namespace. A client that opens an object does not wait for that.
package related

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/story"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
)

// An Answer lists the related objects. It is empty if the object does not exist at the instant.
type Answer struct {
	lack.Answer
	Owners     []find.Ref `json:"owners"`
	Owned      []find.Ref `json:"owned"`
	OwnedTotal int        `json:"ownedTotal"`
	Events     []Event    `json:"events"`
	EventTotal int        `json:"eventsTotal"`
}

// An Event holds the content of an Event about the object. Time is in milliseconds since 1970, 0 if the Event has none.
type Event struct {
	Time    int64  `json:"time"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   string `json:"count"`
	UID     string `json:"uid"`
}

// These limits bound the lists of an answer. The answer also has the total numbers.
const (
	mostOwned  = 200
	mostEvents = 100
)

// Find finds the objects related to an object at an instant.
func Find(ctx context.Context, rec *history.Record, n find.Name, at history.Instant) (*Answer, error) {
	state, err := lack.Read(ctx, rec, history.Scope{})
	if err != nil {
		return nil, err
	}
	v, err := find.At(ctx, rec, n, at)
	switch {
	case err != nil:
		return nil, err
	case v.Damaged != nil:
		return nil, ask.Gone("the objects related to it cannot be shown: %v", v.Damaged)
	}
	a := &Answer{Owners: []find.Ref{}, Owned: []find.Ref{}, Events: []Event{}}
	a.Answer = lack.Answer{Seq: state.Extent.LastSeq, Revision: state.Revision, Incomplete: lack.OfNotes(v.Point.Notes)}
	if v.Seq == 0 {
		return a, nil
	}
	return a, a.relate(ctx, rec, &v)
}

func (a *Answer) relate(ctx context.Context, rec *history.Record, v *find.Version) error {
	var err error
	if a.Owners, err = owners(ctx, rec, v.Doc, v.Life.Namespace); err != nil {
		return err
	}
	kin, err := find.KinOf(ctx, rec, v.Life, v.Point.Seq)
	if err != nil {
		return err
	}
	if kin.More {
		a.Incomplete = append(a.Incomplete, lack.Unseen(v.Point.Time, "Too many objects live: not all were checked. It may own others, and there may be other Events about it."))
	}
	a.OwnedTotal, a.EventTotal = len(kin.Owned), len(kin.Events)
	for _, l := range kin.Owned[:min(len(kin.Owned), mostOwned)] {
		a.Owned = append(a.Owned, find.RefOf(l))
	}
	return a.addEvents(ctx, rec, kin.Events[:min(len(kin.Events), mostEvents)], v.Point.Seq)
}

// addEvents reads Events as they were at a seq.
func (a *Answer) addEvents(ctx context.Context, rec *history.Record, events []history.Life, seq int64) error {
	ids := make([]int64, 0, len(events))
	for _, l := range events {
		ids = append(ids, l.ObjectID)
	}
	docs, missing, err := rec.Lookup().LastVersions(ctx, ids, seq)
	if err != nil {
		return err
	}
	a.Lost(missing)
	for _, l := range events {
		doc, ok := docs[l.ObjectID]
		if !ok {
			continue
		}
		e := story.EventOf(doc)
		a.Events = append(a.Events, Event{Time: timeOf(doc), Type: e.Type, Reason: e.Reason, Message: e.Message, Count: cmp.Or(e.Count, "1"), UID: l.UID})
	}
	slices.SortStableFunc(a.Events, func(x, y Event) int { return cmp.Compare(y.Time, x.Time) })
	return nil
}

// timeOf returns the newest time in an Event.
func timeOf(doc patch.Doc) (ms int64) {
	for _, pointer := range []string{"/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp", "/eventTime", "/metadata/creationTimestamp"} {
		if at, err := time.Parse(time.RFC3339, text(doc, pointer)); err == nil {
			ms = max(ms, at.UnixMilli())
		}
	}
	return ms
}

// owners returns the owners that the object names. If an owner is not on record, only its name is known.
func owners(ctx context.Context, rec *history.Record, doc patch.Doc, namespace string) ([]find.Ref, error) {
	references, _ := patch.Get(doc, "/metadata/ownerReferences")
	refs, uids := []find.Ref{}, []string{}
	for _, owner := range patch.Members(references) {
		refs = append(refs, find.Ref{Kind: text(owner, "/kind"), Namespace: namespace, Name: text(owner, "/name"), UID: text(owner, "/uid")})
		uids = append(uids, text(owner, "/uid"))
	}
	if len(uids) == 0 {
		return refs, nil
	}
	for life, err := range rec.Lives(ctx, history.LifeQuery{UIDs: uids}) {
		if err != nil {
			return nil, err
		}
		refs[slices.Index(uids, life.UID)] = find.RefOf(life)
	}
	return refs, nil
}

// text returns the string at a pointer, or "".
func text(doc patch.Doc, pointer string) string {
	value, _ := patch.Get(doc, pointer)
	plain, _ := patch.Unquote(value)
	return string(plain)
}
