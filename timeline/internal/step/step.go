// Package step finds the next or the previous change of an object, of a group of owned objects, or of the cluster.
package step

import (
	"context"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/story"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// These are the directions and scopes.
const (
	Next     = "next"
	Previous = "previous"
	Object   = "object"
	Group    = "group"
	Cluster  = "cluster"
)

// A Query asks for the first change after a seq, or the last one before it.
type Query struct {
	Seq       int64
	Direction string
	Scope     string
	UID       string // of the object; not for the cluster
	Filter    ask.Filter
}

// An Answer is the change. If Found is nil, there is none, or the time ran out. In the second case, From is the seq from
// which to ask again.
type Answer struct {
	lack.Answer
	Head  int64     `json:"head"` // where the record ended
	Found *int64    `json:"seq"`
	At    int64     `json:"time"`
	Of    *find.Ref `json:"object"`
	UID   string    `json:"uid"`
	From  *int64    `json:"next,omitempty"`
}

// A Finder steps through a record.
type Finder struct {
	Record   *history.Record
	Reader   *marks.Reader
	Patience time.Duration
}

// Find finds the change.
func (f *Finder) Find(ctx context.Context, q Query) (*Answer, error) {
	state, err := lack.Read(ctx, f.Record, history.Scope{})
	if err != nil {
		return nil, err
	}
	ids, err := f.ids(ctx, q)
	if err != nil {
		return nil, err
	}
	reading, err := f.Reader.Begin(ctx, q.Filter, ask.Window{}, ids)
	if err != nil {
		return nil, err
	}
	a := &Answer{Head: state.Extent.LastSeq, Answer: lack.Answer{Seq: state.Extent.LastSeq, Revision: state.Revision, Incomplete: []lack.Lack{}}}
	var m *marks.Mark
	var left int64
	first, last := max(state.Extent.FirstSeq, 1), min(q.Seq-1, state.Extent.LastSeq)
	if q.Direction == Previous {
		m, left, err = reading.Last(ctx, first, last, f.Patience)
	} else {
		first, last = max(q.Seq+1, first), state.Extent.LastSeq
		m, left, err = reading.First(ctx, first, last, f.Patience)
	}
	if err != nil {
		return nil, err
	}
	reading.ReportTo(&a.Answer)
	if m == nil {
		a.continueFrom(q, left, first, last)
		return a, nil
	}
	return a, a.fill(ctx, f.Record, m)
}

// continueFrom sets the seq from which to ask again, if Find did not read everything.
func (a *Answer) continueFrom(q Query, left, first, last int64) {
	from := left + 1 // The next request, for the change before this seq, begins to read at left.
	if q.Direction == Next {
		from = left - 1
	}
	if left < first || left > last {
		return
	}
	a.From = &from
	a.Incomplete = append(a.Incomplete, lack.Lack{Kind: lack.Unread, Text: "No such change was found yet: ask again."})
}

func (a *Answer) fill(ctx context.Context, rec *history.Record, m *marks.Mark) error {
	a.Found, a.At = &m.Seq, m.OccurredAt.UnixMilli()
	for life, err := range rec.Lives(ctx, history.LifeQuery{ObjectIDs: []int64{m.ObjectID}}) {
		if err != nil {
			return err
		}
		ref := find.RefOf(life)
		a.Of, a.UID = &ref, life.UID
	}
	return nil
}

// ids returns the lives of a scope; nil for all.
func (f *Finder) ids(ctx context.Context, q Query) ([]int64, error) {
	if q.Scope == Cluster {
		return nil, nil
	}
	life, err := find.Life(ctx, f.Record, find.Name{UID: q.UID}, q.Seq)
	if err != nil || q.Scope == Object {
		return []int64{life.ObjectID}, err
	}
	root := life
	above, err := find.Above(ctx, f.Record, life)
	if err != nil {
		return nil, err
	}
	if len(above) > 0 {
		root = above[len(above)-1]
	}
	ids := []int64{life.ObjectID, root.ObjectID}
	s, err := story.Find(ctx, f.Record, history.Query{Scope: history.Scope{Streams: []int32{root.Stream.ID}, Namespace: root.Namespace, Name: root.Name}})
	if err == nil {
		err = s.Search(ctx)
	}
	if err != nil {
		return nil, err
	}
	for _, o := range s.Objects {
		ids = append(ids, o.ObjectID)
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
