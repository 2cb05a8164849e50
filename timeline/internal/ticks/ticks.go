// Package ticks returns the changes of some lanes in a window. It merges changes that the page would draw on top of each
// other into one tick with their number. So it drops no change without counting it.
package ticks

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// MostLanes is the largest number of lanes in one request.
const MostLanes = 500

// mostSteps bounds the ticks of a lane. It is more than the width of a screen in pixels.
const mostSteps = 4000

// A Query selects the ticks of lanes.
type Query struct {
	Window ask.Window
	Lanes  []int64
	Step   time.Duration // changes within it are merged; widened, if the window has more than 4,000 steps
	Filter ask.Filter
	Cursor string // Older of the previous answer; "" at first
}

// Ticks are the answer. Its times are milliseconds after From. If the time ran out, Older is the cursor of an answer that
// holds all of these ticks, and more.
type Ticks struct {
	lack.Answer
	From     int64         `json:"from"`
	To       int64         `json:"to"`
	StepMS   int64         `json:"stepMs"`
	Lanes    []Lane        `json:"lanes"`
	Classes  []class.Class `json:"classes"`
	Managers []string      `json:"managers"`
	Older    string        `json:"older,omitempty"`
}

// A Lane has columns of one length. A tick has the time and the seq of its last delta, and its most important class. Its
// manager is -1 unless one manager provably made all its changes.
type Lane struct {
	ID      int64   `json:"id"`
	Time    []int64 `json:"time"`
	Seq     []int64 `json:"seq"`
	Count   []int64 `json:"count"`
	Class   []int   `json:"class"`
	Manager []int   `json:"manager"`
	Hidden  int64   `json:"hidden"`
}

// A Finder finds the ticks of a record.
type Finder struct {
	Record   *history.Record
	Reader   *marks.Reader
	Patience time.Duration
}

// Find returns the ticks.
func (f *Finder) Find(ctx context.Context, q Query, now time.Time) (*Ticks, error) {
	state, err := lack.Read(ctx, f.Record, history.Scope{})
	if err != nil {
		return nil, err
	}
	first, last, err := f.Record.Timeline().Between(ctx, q.Window.From, q.Window.To)
	if err != nil {
		return nil, err
	}
	reading, err := f.Reader.Begin(ctx, q.Filter, q.Window, q.Lanes)
	if err != nil {
		return nil, err
	}
	head := state.Extent.LastSeq
	at, err := ask.PlaceOf(q.Cursor, min(last, head), head)
	if err != nil {
		return nil, err
	}
	m := newMerging(&q)
	left, err := reading.Again(ctx, first, max(at.Low, first), at.Last, f.Patience, m.add)
	if err != nil {
		return nil, err
	}
	t := m.ticks(&q, reading.Hidden)
	t.Answer = state.Answer(q.Window, now)
	reading.ReportTo(&t.Answer)
	if left >= first {
		t.Older = ask.Place{Low: left + 1, Last: at.Last}.String()
		t.Incomplete = append(t.Incomplete, lack.NotCounted(q.Window.From, m.oldest(q.Window.To)))
	}
	return t, nil
}

// A place is where a tick is drawn.
type place struct{ lane, step int64 }

type tick struct {
	at      time.Time
	seq     int64
	count   int64
	class   class.Class
	manager int
}

// A merging merges marks.
type merging struct {
	step     int64 // in milliseconds
	found    map[place]*tick
	managers []string
	index    map[string]int
	first    time.Time // time of the oldest mark
}

func newMerging(q *Query) *merging {
	least := (q.Window.To.Sub(q.Window.From).Milliseconds() + mostSteps - 1) / mostSteps
	return &merging{step: max(q.Step.Milliseconds(), least, 1), found: map[place]*tick{}, managers: []string{}, index: map[string]int{}}
}

func (m *merging) add(found []marks.Mark) {
	for i := range found {
		m.merge(&found[i])
	}
	if len(found) > 0 {
		m.first = found[0].ObservedAt
	}
}

// merge adds one mark. Steps begin at whole multiples of their width, so they stay in place while the window moves.
func (m *merging) merge(mark *marks.Mark) {
	at := place{mark.ObjectID, mark.OccurredAt.UnixMilli() / m.step}
	manager := m.manager(mark.Manager)
	t := m.found[at]
	if t == nil {
		t = &tick{class: mark.Class, manager: manager}
		m.found[at] = t
	}
	t.count++
	if mark.Seq > t.seq {
		t.seq, t.at = mark.Seq, mark.OccurredAt
	}
	if class.Index(mark.Class) < class.Index(t.class) {
		t.class = mark.Class
	}
	if t.manager != manager {
		t.manager = -1
	}
}

func (m *merging) manager(name string) int {
	if name == "" {
		return -1
	}
	i, known := m.index[name]
	if !known {
		i = len(m.managers)
		m.index[name], m.managers = i, append(m.managers, name)
	}
	return i
}

func (m *merging) oldest(otherwise time.Time) time.Time {
	if m.first.IsZero() {
		return otherwise
	}
	return m.first
}

func (m *merging) ticks(q *Query, hidden map[int64]int64) *Ticks {
	t := &Ticks{From: q.Window.From.UnixMilli(), To: q.Window.To.UnixMilli(), StepMS: m.step, Classes: class.All, Managers: m.managers, Lanes: []Lane{}}
	byLane := map[int64][]*tick{}
	for at, each := range m.found {
		byLane[at.lane] = append(byLane[at.lane], each)
	}
	for _, id := range q.Lanes {
		all := byLane[id]
		slices.SortFunc(all, func(a, b *tick) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.seq, b.seq)) })
		lane := Lane{ID: id, Hidden: hidden[id], Time: []int64{}, Seq: []int64{}, Count: []int64{}, Class: []int{}, Manager: []int{}}
		for _, each := range all {
			lane.Time, lane.Seq, lane.Count = append(lane.Time, each.at.UnixMilli()-t.From), append(lane.Seq, each.seq), append(lane.Count, each.count)
			lane.Class, lane.Manager = append(lane.Class, class.Index(each.class)), append(lane.Manager, each.manager)
		}
		t.Lanes = append(t.Lanes, lane)
	}
	return t
}
