// Package troubles lists the objects that are bad at an instant (package state), with the beginning of each trouble and the
// change before it.
//
// The change before a trouble is the newest change of the root of the owners by the time at which the trouble began. A change
// of the wanted state comes first. If the root has no change, it is a change of the object or of another owner. It does not
// prove a cause.
//
// If the record or the time does not suffice, an item says so in Unknown, and names no change:
//
//   - A version of the object is damaged, or on a missing day: the beginning of the trouble is unknown.
//   - The object was bad when it was first recorded: the beginning is unknown, too.
//   - A change may be missing since, or was not reached in time: the item names none.
//
// # What is kept
//
// A page that follows the record asks again a few seconds later. So Kept holds the objects in trouble, and the next answer is
// derived from them and the deltas between. Deriving and rebuilding give the same list, unless an operator damaged or removed
// rows since: only a rebuilt list reports that. An answer is derived only if:
//
//   - no day was dropped, no value was erased, and no gap was opened or closed since;
//   - the record still has the commit with which it ended, and the same resources;
//   - nothing was damaged or missing in the earlier answer or in the deltas between;
//   - the instant holds all deltas up to its seq, and no delta that was recovered later.
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

// MostItems is the largest number of items in an answer. Total counts all.
const MostItems = 50

// An Answer lists the troubles.
type Answer struct {
	lack.Answer
	At    int64   `json:"at"` // seq
	Items []*Item `json:"items"`
	Total int     `json:"total"`
}

// An Item is an object in trouble. If it has neither Since nor Unknown, the trouble began more than a day before the
// instant. If the record ends before the instant, it began more than a day before that end.
type Item struct {
	find.Ref
	Text        string  `json:"text"`
	Since       *int64  `json:"since"`
	SinceTime   *int64  `json:"sinceTime"`
	FirstChange *Change `json:"firstChange"`
	Unknown     string  `json:"unknown,omitempty"` // why the beginning, or the change before it, is not known

	life      history.Life
	decidedBy int64 // seq of the version that decided Since or Unknown; 0 for none
}

// A Change is the last change before a trouble.
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
	Kept     *Kept
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
	s := &snapshot{seq: point.Seq, streams: scope.Streams, revision: whole.Revision, items: map[int64]*Item{}}
	if s.first, err = lookFrom(ctx, f.Record, point, whole.Extent.LastAt); err != nil {
		return nil, err
	}
	a := &Answer{At: point.Seq}
	a.Answer = lack.Answer{Seq: whole.Extent.LastSeq, Revision: whole.Revision, Incomplete: lack.OfNotes(point.Notes)}
	keep, err := f.fill(ctx, s, point, &a.Answer)
	if err != nil {
		return nil, err
	}
	a.list(s)
	gaps, err := f.Record.Completeness().Gaps(ctx, history.Scope{})
	if err != nil {
		return nil, err
	}
	if err := f.changes(ctx, a, s, gaps); err != nil {
		return nil, err
	}
	return a, f.keepUnchanged(ctx, whole.Revision, keep)
}

// keepUnchanged keeps a snapshot, unless the record's past changed while the answer was made.
func (f *Finder) keepUnchanged(ctx context.Context, revision int64, keep func()) error {
	now, err := lack.Read(ctx, f.Record, history.Scope{})
	if err == nil && now.Revision == revision {
		keep()
	}
	return err
}

// fill finds the objects in trouble: from an earlier snapshot, or else by rebuilding all objects that can be bad. keep
// stores the snapshot, if other snapshots may be derived from it.
func (f *Finder) fill(ctx context.Context, s *snapshot, point history.Point, a *lack.Answer) (keep func(), err error) {
	forget := func() {}
	plain := point.RV == "" && point.Until <= point.Seq
	var from *snapshot
	if plain {
		if s.head, err = f.Record.Commits().Head(ctx); err != nil {
			return forget, err
		}
		if from, err = f.earlier(ctx, s); err != nil {
			return forget, err
		}
	}
	keep = func() { f.Kept.keep(s, from) }
	if from != nil && f.derive(ctx, s, from) {
		return keep, nil
	}
	noted := len(a.Incomplete)
	if err := s.collect(ctx, f.Record, point, a); err != nil {
		return forget, err
	}
	if err := s.since(ctx, f.Record, point, a); err != nil {
		return forget, err
	}
	if !plain || len(a.Incomplete) > noted {
		return forget, nil
	}
	return keep, nil
}

// list lists the newest troubles first. It copies the items, because each copy gets the change before its trouble.
func (a *Answer) list(s *snapshot) {
	a.Items, a.Total = []*Item{}, len(s.items)
	for _, item := range s.items {
		shown := *item
		a.Items = append(a.Items, &shown)
	}
	slices.SortFunc(a.Items, func(x, y *Item) int {
		return cmp.Or(cmp.Compare(begin(y), begin(x)), cmp.Compare(y.life.ObjectID, x.life.ObjectID))
	})
	a.Items = a.Items[:min(len(a.Items), MostItems)]
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

func newItem(life history.Life, text string) *Item {
	return &Item{Ref: find.RefOf(life), Text: short(text), life: life}
}

// collect rebuilds the objects that can be bad.
func (s *snapshot) collect(ctx context.Context, rec *history.Record, point history.Point, a *lack.Answer) error {
	var mu sync.Mutex // protects the variables that these functions write: several goroutines call them
	onDamaged := func(d *history.DamagedError) {
		mu.Lock()
		defer mu.Unlock()
		a.Incomplete = append(a.Incomplete, lack.DamagedAt(point.Time, d))
	}
	_, err := rec.Rebuild(ctx, point, history.Scope{Streams: s.streams}, history.RebuildOptions{Damaged: onDamaged}, func(o history.Object) error {
		how, text := state.Of(o.Stream.GroupResource().String(), o.Doc)
		if how != state.Bad {
			return nil
		}
		life := history.Life{ObjectID: o.ObjectID, Stream: o.Stream, Namespace: o.Namespace, Name: o.Name, UID: o.UID}
		mu.Lock()
		defer mu.Unlock()
		s.items[o.ObjectID] = newItem(life, text)
		return nil
	})
	return err
}
