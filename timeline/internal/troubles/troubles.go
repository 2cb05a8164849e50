// Package troubles lists the objects that are bad at an instant (package state), since when, and the change that came before.
//
// The change before is the newest one, by the time that the trouble began, of the root of the owners. One that changed what is wanted comes first. If the
// root has none, it is one of the object or of another owner. It is no proof of a cause. If changes of one of them may be missing in between, none is
// named: a gap may hold it.
package troubles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
	"github.com/kuberewind/kuberewind/timeline/internal/state"
)

// MostItems is how many an answer gives. Total has all.
const MostItems = 50

// lookBack is how far the begin of a trouble is looked for.
const lookBack = 24 * time.Hour

// An Answer is the answer.
type Answer struct {
	lack.Answer
	At    int64   `json:"at"` // seq
	Items []*Item `json:"items"`
	Total int     `json:"total"`
}

// An Item is an object in trouble. Without Since, it was so for longer than a day.
type Item struct {
	find.Ref
	Text        string  `json:"text"`
	Since       *int64  `json:"since"`
	SinceTime   *int64  `json:"sinceTime"`
	FirstChange *Change `json:"firstChange"`
	Unknown     string  `json:"unknown,omitempty"` // why no change is named

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
	scope := history.Scope{Streams: marks.StreamsOf(streams, state.Troubled)}
	point, err := f.Record.Resolve(ctx, at, scope)
	if err != nil {
		return nil, err
	}
	a := &Answer{At: point.Seq, Items: []*Item{}}
	a.Answer = lack.Answer{Seq: whole.Extent.LastSeq, Revision: whole.Revision, Incomplete: lack.OfNotes(point.Notes)}
	if err := a.collect(ctx, f.Record, point, scope); err != nil {
		return nil, err
	}
	if err := a.since(ctx, f.Record, point); err != nil {
		return nil, err
	}
	slices.SortStableFunc(a.Items, func(x, y *Item) int { return cmp.Compare(begin(y), begin(x)) })
	a.Items = a.Items[:min(len(a.Items), MostItems)]
	gaps, err := f.Record.Gaps(ctx, history.Scope{})
	if err != nil {
		return nil, err
	}
	for _, item := range a.Items {
		if err := f.change(ctx, item, gaps); err != nil {
			return nil, err
		}
	}
	return a, nil
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
	_, err := rec.Rebuild(ctx, point, scope, history.RebuildOptions{Damaged: func(*history.DamagedError) {}}, func(o history.Object) error {
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

// since finds when the troubles began, in one reading.
func (a *Answer) since(ctx context.Context, rec *history.Record, point history.Point) error {
	byID, ids := map[int64]*Item{}, []int64{}
	for _, item := range a.Items {
		byID[item.life.ObjectID] = item
		ids = append(ids, item.life.ObjectID)
	}
	if len(ids) == 0 {
		return nil
	}
	first, _, err := rec.Between(ctx, point.Time.Add(-lookBack), point.Time)
	if err != nil {
		return err
	}
	for v, err := range rec.Versions(ctx, history.Query{ObjectIDs: ids, FromSeq: first, ToSeq: max(point.Seq, point.Until)}) {
		var damaged *history.DamagedError
		var missing *history.MissingDayError
		switch {
		case errors.As(err, &damaged), errors.As(err, &missing):
			continue
		case err != nil:
			return err
		}
		byID[v.ObjectID].see(&v)
	}
	return nil
}

// see takes the next version of the object.
func (i *Item) see(v *history.Version) {
	switch {
	case !bad(v, v.Doc):
		i.Since, i.SinceTime = nil, nil
	case i.Since == nil && !bad(v, v.Before):
		at := v.OccurredAt.UnixMilli()
		i.Since, i.SinceTime = &v.Seq, &at
	}
}

func bad(v *history.Version, doc patch.Doc) bool {
	if doc == nil {
		return false
	}
	s, _ := state.Of(v.Stream.GroupResource().String(), doc)
	return s == state.Bad
}

// changed are the classes that a person makes.
var changed = []class.Class{class.Changed, class.Added, class.Deleted}

// change finds the last change before a trouble, of the object and its owners.
func (f *Finder) change(ctx context.Context, item *Item, gaps []history.Gap) error {
	if item.Since == nil {
		return nil
	}
	chain, err := find.Above(ctx, f.Record, item.life)
	if err != nil {
		return err
	}
	chain = append(chain, item.life)
	ids, first := []int64{}, *item.Since
	for _, l := range chain {
		ids = append(ids, l.ObjectID)
		first = min(first, l.ObjectID)
	}
	slices.Sort(ids)
	reading, err := f.Reader.Begin(ctx, ask.Filter{Classes: changed}, ask.Window{}, ids)
	if err != nil {
		return err
	}
	reading.KeepPatches()
	root := chain[0]
	if len(chain) > 1 {
		root = chain[len(chain)-2]
	}
	m, err := lastOf(ctx, reading, root.ObjectID, first, *item.Since, f.Patience)
	if err != nil || m == nil {
		return err
	}
	if g := between(gaps, chain, m.OccurredAt, time.UnixMilli(*item.SinceTime)); g != nil {
		item.Unknown = fmt.Sprintf("Changes of %s may be missing before it (%s): what came before the trouble is not known.", g.Stream, g.Cause)
		return nil
	}
	for _, l := range chain {
		if l.ObjectID == m.ObjectID {
			item.FirstChange = &Change{Ref: find.RefOf(l), Seq: m.Seq, Time: m.OccurredAt.UnixMilli(), Text: words(m)}
		}
	}
	return nil
}

// lastOf gives the newest of the changes that rank highest.
func lastOf(ctx context.Context, reading *marks.Reading, root, first, last int64, patience time.Duration) (found *marks.Mark, err error) {
	all, _, err := reading.Newest(ctx, first, last, mostLooked, patience)
	best := -1
	for i := range all {
		if r := rank(&all[i], root); r > best {
			found, best = &all[i], r
		}
	}
	return found, err
}

// rank prefers the root, since what its controllers did follows from its change, and a change of what is wanted.
func rank(m *marks.Mark, root int64) (r int) {
	if m.ObjectID == root {
		r = 2
	}
	for op := range patch.Operations(m.Patch) {
		if len(op.Path) > 0 && op.Path[0] != "metadata" && op.Path[0] != "status" {
			return r + 1
		}
	}
	return r
}

// mostLooked bounds the changes that are looked at before a trouble.
const mostLooked = 200

// between gives a gap of one of some lives that touches the time between two moments.
func between(gaps []history.Gap, chain []history.Life, from, to time.Time) *history.Gap {
	for i := range gaps {
		g := &gaps[i]
		ours := slices.ContainsFunc(chain, func(l history.Life) bool { return g.Stream != nil && g.Stream.ID == l.Stream.ID })
		if ours && g.Outcome != history.OutcomeResumed && !g.FromAt.IsZero() && g.FromAt.Before(to) && (g.ToAt.IsZero() || g.ToAt.After(from)) {
			return g
		}
	}
	return nil
}

// words say what a change was.
func words(m *marks.Mark) string {
	text := map[class.Class]string{class.Added: "made", class.Deleted: "deleted", class.Changed: "changed"}[m.Class]
	paths := 0
	for op := range patch.Operations(m.Patch) {
		if len(op.Path) == 0 || op.Path[0] == "status" || len(op.Path) > 1 && op.Path[0] == "metadata" && (op.Path[1] == "managedFields" || op.Path[1] == "generation") {
			continue
		}
		if paths++; paths == 1 {
			text += " " + marks.Pointer(op.Path)
		}
	}
	if paths > 1 {
		text += fmt.Sprintf(" and %d more", paths-1)
	}
	if m.Manager != "" {
		text += " by " + m.Manager
	}
	return text
}
