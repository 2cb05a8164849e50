// Package troubles lists the objects that are bad at an instant (package state), since when, and the change that came before.
//
// The change before is the newest one, by the time that the trouble began, of the root of the owners. One that changed what is wanted comes first. If the
// root has none, it is one of the object or of another owner. It is no proof of a cause.
//
// If the record or the time does not suffice, an item says so in Unknown, and names nothing:
//
//   - A version of the object is damaged, or on a day that is gone: the begin of the trouble is not known.
//   - The object was bad when it was first recorded: the begin is not known, either.
//   - A change may be missing since, or was not reached in time: none is named.
package troubles

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
	"github.com/kuberewind/kuberewind/timeline/internal/state"
)

// MostItems is how many an answer gives. Total has all.
const MostItems = 50

// An Answer is the answer.
type Answer struct {
	lack.Answer
	At    int64   `json:"at"` // seq
	Items []*Item `json:"items"`
	Total int     `json:"total"`
}

// An Item is an object in trouble. Without Since and Unknown, it was so for longer than a day, before the instant or before the record's end.
type Item struct {
	find.Ref
	Text        string  `json:"text"`
	Since       *int64  `json:"since"`
	SinceTime   *int64  `json:"sinceTime"`
	FirstChange *Change `json:"firstChange"`
	Unknown     string  `json:"unknown,omitempty"` // why the begin of it, or the change before, is not known

	life history.Life
}

// A Change is the last one before a trouble.
type Change struct {
	find.Ref
	Seq  int64  `json:"seq"`
	Time int64  `json:"time"`
	Text string `json:"text"`
}

// A Finder finds the troubles of a record.
type Finder struct {
	Record   *history.Record
	Reader   *marks.Reader
	Patience time.Duration
}

// Find lists the objects in trouble.
func (f *Finder) Find(ctx context.Context, at history.Instant) (*Answer, error) {
	whole, err := lack.Read(ctx, f.Record, history.Scope{})
	if err != nil {
		return nil, err
	}
	streams, err := f.Record.Streams(ctx)
	if err != nil {
		return nil, err
	}
	scope := history.Scope{Streams: canBeBad(streams)}
	point, err := f.Record.Resolve(ctx, at, scope)
	if err != nil {
		return nil, err
	}
	a := &Answer{At: point.Seq, Items: []*Item{}}
	a.Answer = lack.Answer{Seq: whole.Extent.LastSeq, Revision: whole.Revision, Incomplete: lack.OfNotes(point.Notes)}
	if err := a.collect(ctx, f.Record, point, scope); err != nil {
		return nil, err
	}
	if err := a.since(ctx, f.Record, point, whole.Extent.LastAt); err != nil {
		return nil, err
	}
	slices.SortStableFunc(a.Items, func(x, y *Item) int { return cmp.Compare(begin(y), begin(x)) })
	a.Items = a.Items[:min(len(a.Items), MostItems)]
	gaps, err := f.Record.Gaps(ctx, history.Scope{})
	if err != nil {
		return nil, err
	}
	return a, f.changes(ctx, a, gaps)
}

func canBeBad(streams []history.Stream) []int32 {
	ids := []int32{}
	for i := range streams {
		if state.CanBeBad(streams[i].GroupResource().String()) {
			ids = append(ids, streams[i].ID)
		}
	}
	return ids
}

func begin(i *Item) int64 {
	if i.Since == nil {
		return 0
	}
	return *i.Since
}

// collect rebuilds the objects that can be bad.
func (a *Answer) collect(ctx context.Context, rec *history.Record, point history.Point, scope history.Scope) error {
	var mu sync.Mutex
	hurt := func(d *history.DamagedError) {
		mu.Lock()
		defer mu.Unlock()
		a.Incomplete = append(a.Incomplete, lack.Hurt(point.Time, d))
	}
	_, err := rec.Rebuild(ctx, point, scope, history.RebuildOptions{Damaged: hurt}, func(o history.Object) error {
		s, text := state.Of(o.Stream.GroupResource().String(), o.Doc)
		if s != state.Bad {
			return nil
		}
		life := history.Life{ObjectID: o.ObjectID, Stream: o.Stream, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
		mu.Lock()
		defer mu.Unlock()
		a.Items = append(a.Items, &Item{Ref: find.RefOf(life), Text: text, life: life})
		return nil
	})
	a.Total = len(a.Items)
	slices.SortFunc(a.Items, func(x, y *Item) int { return cmp.Compare(y.life.ObjectID, x.life.ObjectID) })
	return err
}
