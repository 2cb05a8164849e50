// Package lanes lists the objects of a window, a lane for each life.
//
// # Which lives have lanes
//
//   - Lives with a delta that the filter selects.
//   - If the filter names a namespace, a resource or a name, but no kind of change: also objects that lived in the window and did
//     not change.
//   - If lanes are grouped by owner: the owners of these, up to the root.
//
// Events and Leases have lanes only if the filter names their resource: each is an object of its own, and means little alone.
// Answer.Left counts them. Every other cut has a cursor:
//
//   - Next is the cursor of the next lanes of this list. They are counted as these lanes were, whatever has come since.
//   - Older is the cursor of a list that is counted further back, if this list was not counted to the end in time. That list
//     begins with its first lanes.
//
// Owners are those of the first version on record. A Pod is on the node of its last version in the window. Before sorting, the
// package looks up owners, nodes and troubles for the 2,000 lanes that changed most. Listed lanes always have their troubles.
package lanes

import (
	"context"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// These constants say how lanes are sorted and grouped.
const (
	ByChanges = "changes"
	ByTrouble = "trouble"
	ByName    = "name"
	ByOwner   = "owner"
	ByNode    = "node"
	Flat      = "none"
)

// MostLimit is the largest number of lanes in one answer.
const MostLimit = 500

// A Query selects the lanes of a window.
type Query struct {
	Window      ask.Window
	Sort, Group string
	Limit       int64
	Cursor      string
	Filter      ask.Filter
}

// An Answer lists the lanes.
type Answer struct {
	lack.Answer
	Total  int64                 `json:"total"`
	Lanes  []Lane                `json:"lanes"`
	Hidden map[class.Class]int64 `json:"hidden"` // how many deltas were not counted
	Left   map[string]int64      `json:"left"`   // how many lives have no lane, by resource
	Next   string                `json:"next,omitempty"`
	Older  string                `json:"older,omitempty"`
}

// A Lane is one life. Born and Ended are milliseconds since 1970.
type Lane struct {
	ID        int64  `json:"id"`
	UID       string `json:"uid"`
	Resource  string `json:"resource"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Depth     int    `json:"depth"`
	Owner     *int64 `json:"owner"`
	Born      *int64 `json:"born"`  // nil: before it was on record, or that day is gone
	Ended     *int64 `json:"ended"` // nil: it lives, or the day of its end is gone
	Changes   int64  `json:"changes"`
	Hidden    int64  `json:"hidden"`
	Trouble   string `json:"trouble"` // at the end of the window; "" if the object is not bad
}

// A Finder finds the lanes of a record.
type Finder struct {
	Record   *history.Record
	Reader   *marks.Reader
	Patience time.Duration
}

// Find returns the lanes.
func (f *Finder) Find(ctx context.Context, q Query, now time.Time) (*Answer, error) {
	state, err := lack.Read(ctx, f.Record, history.Scope{})
	if err != nil {
		return nil, err
	}
	a := &Answer{Answer: state.Answer(q.Window, now), Hidden: map[class.Class]int64{}, Left: map[string]int64{}, Lanes: []Lane{}}
	c := &collection{finder: f, query: &q, answer: a, byID: map[int64]*entry{}, byUID: map[string]*entry{}}
	at, err := c.count(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.find(ctx); err != nil {
		return nil, err
	}
	sorted := c.sorted()
	a.Total = int64(len(sorted))
	page := sorted[min(at.Offset, a.Total):min(at.Offset+q.Limit, a.Total)]
	if at.Offset += q.Limit; at.Offset < a.Total {
		a.Next = at.String()
	}
	return a, c.give(ctx, page)
}

// give adds the lanes of a page to the answer, with their beginnings, ends and troubles.
func (c *collection) give(ctx context.Context, page []*entry) error {
	times, err := c.times(ctx, page)
	if err != nil {
		return err
	}
	if err := c.trouble(ctx, page); err != nil {
		return err
	}
	for _, e := range page {
		lane := Lane{
			ID: e.life.ObjectID, UID: e.life.UID, Resource: e.life.Stream.GroupResource().String(), Kind: e.life.Stream.Kind, Namespace: e.life.Namespace, Name: e.life.Name,
			Depth: e.depth, Changes: e.changes, Hidden: e.hidden, Trouble: e.trouble,
		}
		if e.owner != nil {
			lane.Owner = &e.owner.life.ObjectID
		}
		if m, ok := times[e.life.ObjectID]; ok && m.Type == delta.Added {
			lane.Born = milli(m.OccurredAt)
		}
		if m, ok := times[e.life.DeletedSeq]; ok {
			lane.Ended = milli(m.OccurredAt)
		}
		c.answer.Lanes = append(c.answer.Lanes, lane)
	}
	return nil
}

func milli(t time.Time) *int64 {
	n := t.UnixMilli()
	return &n
}

// times returns the first and last deltas of the lives of a page. It finds none on days whose partitions are gone.
func (c *collection) times(ctx context.Context, page []*entry) (map[int64]history.Mark, error) {
	var seqs []int64
	for _, e := range page {
		if seqs = append(seqs, e.life.ObjectID); e.life.DeletedSeq != 0 {
			seqs = append(seqs, e.life.DeletedSeq)
		}
	}
	return marks.At(ctx, c.finder.Record, seqs)
}
