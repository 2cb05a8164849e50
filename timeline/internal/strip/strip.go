// Package strip counts deltas in bars of one width.
//
// It counts from the newest delta backwards, until its time is spent. The answer names the uncounted rest as a period, and with
// a cursor. The answer to the cursor holds only the newly counted deltas: the page adds the bars up.
//
// It uses counts made ahead (package activity), if the filter names only namespaces, resources, a manager and classes. It reads
// uncounted deltas one by one: the newest deltas, or all of them if no recorder counts. The answer says so.
package strip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// A Query selects the bars of a window.
type Query struct {
	Window ask.Window
	Bars   int64 // at least this many, if the window has as many seconds
	Filter ask.Filter
	Cursor string // cursor of the previous answer; "" at first
}

// A Strip holds the bars. Bar i counts the deltas that occurred within StepMS after From + i × StepMS.
type Strip struct {
	lack.Answer
	From     int64                 `json:"from"`
	To       int64                 `json:"to"`
	StepMS   int64                 `json:"stepMs"`
	Classes  []class.Class         `json:"classes"`
	Counts   [][]int64             `json:"counts"`   // by class, then by bar
	FirstSeq []int64               `json:"firstSeq"` // of each bar, 0 if the bar is empty
	LastSeq  []int64               `json:"lastSeq"`
	Hidden   map[class.Class]int64 `json:"hidden"`
	Before   map[class.Class]int64 `json:"before"` // in the requested window, but dated before the record: a first list finds older objects
	Next     string                `json:"next,omitempty"`
	Ahead    *Ahead                `json:"ahead,omitempty"` // nil if no counts made ahead can be used
}

// A Counter counts the deltas of a record.
type Counter struct {
	Record *history.Record
	Reader *marks.Reader
	// Patience is how long counting an answer may take.
	Patience time.Duration
}

// Count returns the bars.
func (c *Counter) Count(ctx context.Context, q Query, now time.Time) (*Strip, error) {
	streams, err := c.Record.Streams(ctx)
	if err != nil {
		return nil, err
	}
	state, err := lack.Read(ctx, c.Record, history.Scope{Streams: marks.StreamsOf(streams, q.Filter.Resources)})
	if err != nil {
		return nil, err
	}
	at, err := c.begin(ctx, q, &state)
	if err != nil {
		return nil, err
	}
	reading, err := c.Reader.Begin(ctx, q.Filter, ask.Window{From: at.since, To: at.window.To}, nil)
	if err != nil {
		return nil, err
	}
	reading.HiddenFrom = at.window.From
	s := newStrip(at, shown(q.Filter))
	s.Answer = state.Answer(q.Window, now)
	s.Seq = at.head
	left, err := c.count(ctx, q, at, s, reading)
	if err != nil {
		return nil, err
	}
	s.Hidden[class.Heartbeat] += reading.HiddenInAll()
	reading.ReportTo(&s.Answer)
	if left >= at.first {
		rest := at
		rest.last = left
		s.Next = rest.String()
		err = c.unread(ctx, s, rest)
	}
	s.explain(q)
	return s, err
}

// unread adds the uncounted period to the answer.
func (c *Counter) unread(ctx context.Context, s *Strip, at progress) error {
	until := at.window.To
	moments, err := c.Record.Timeline().Moments(ctx, history.Moment{Seq: at.last - 1}, 1)
	var missing *history.MissingDayError
	switch {
	case errors.As(err, &missing):
		until = missing.Day.AddDate(0, 0, 1)
	case err != nil:
		return err
	case len(moments) > 0:
		until = moments[0].At.Add(time.Microsecond)
	}
	if until.After(at.window.To) {
		until = at.window.To
	}
	s.Incomplete = append(s.Incomplete, lack.NotCounted(at.window.From, until))
	return nil
}

// A progress is how far the counting of a window has come. As text it is the cursor.
type progress struct {
	window      ask.Window
	since       time.Time // where the window would begin if the record began earlier
	step        time.Duration
	first, last int64 // seqs to count
	head        int64 // where the record ended when the counting began
}

func (p progress) String() string {
	return fmt.Sprintf("%d-%d-%d-%d-%d-%d-%d", p.since.UnixMilli(), p.window.From.UnixMilli(), p.window.To.UnixMilli(), p.step.Milliseconds(), p.first, p.last, p.head)
}

// begin finds what to count. The window ends with the record: nothing is known outside it.
func (c *Counter) begin(ctx context.Context, q Query, state *lack.State) (p progress, err error) {
	if q.Cursor != "" {
		return resumed(q, state.Extent.LastSeq)
	}
	p.window, p.step = q.Window.Clamped(state.Extent.FirstAt, state.Extent.LastAt.Add(time.Millisecond)).Quantised(q.Bars)
	p.head, p.since = state.Extent.LastSeq, p.window.From
	if q.Window.From.Before(p.since) {
		p.since = times.Later(q.Window.From.Truncate(p.step), time.UnixMilli(0).UTC())
	}
	if !p.window.From.Before(p.window.To) || !q.Window.To.After(state.Extent.FirstAt) || q.Window.From.After(state.Extent.LastAt) {
		p.window.To, p.last = p.window.From, -1
		return p, nil
	}
	p.first, p.last, err = c.Record.Timeline().Between(ctx, p.since, p.window.To)
	p.last = min(p.last, p.head)
	return p, err
}

// mostBars is more than the width of a screen in pixels.
const mostBars = 10_000

// resumed reads a cursor. It refuses a cursor that no answer returned: times that cannot be subtracted, bars that are not
// whole, or seqs that the record lacks.
func resumed(q Query, head int64) (p progress, err error) {
	var since, from, to, step int64
	_, err = fmt.Sscanf(q.Cursor, "%d-%d-%d-%d-%d-%d-%d", &since, &from, &to, &step, &p.first, &p.last, &p.head)
	asked, known := ask.WindowOf(since, to)
	p.since, p.window, p.step = asked.From, ask.Window{From: time.UnixMilli(from).UTC(), To: asked.To}, time.Duration(step)*time.Millisecond
	if err != nil || !known || p.String() != q.Cursor || step < 1 || from < since || from >= to || (to-from)/step > mostBars || (to-from)%step != 0 || p.first < 1 || p.last > p.head || p.head > head {
		return p, ask.BadCursor(q.Cursor)
	}
	return p, nil
}

// shown returns the classes that have bars.
func shown(f ask.Filter) (classes []class.Class) {
	for _, c := range class.All {
		if slices.Contains(f.Classes, c) || f.Classes == nil && c != class.Heartbeat {
			classes = append(classes, c)
		}
	}
	return classes
}

func newStrip(at progress, classes []class.Class) *Strip {
	bars := int(at.window.To.Sub(at.window.From) / at.step)
	s := &Strip{
		From: at.window.From.UnixMilli(), To: at.window.To.UnixMilli(), StepMS: at.step.Milliseconds(),
		Classes: classes, FirstSeq: make([]int64, bars), LastSeq: make([]int64, bars), Hidden: map[class.Class]int64{},
		Before: map[class.Class]int64{}, Ahead: &Ahead{},
	}
	for range classes {
		s.Counts = append(s.Counts, make([]int64, bars))
	}
	return s
}

func (s *Strip) add(found []marks.Mark) {
	for i := range found {
		m := &found[i]
		s.tally(slices.Index(s.Classes, m.Class), m.OccurredAt.UnixMilli(), 1, m.Seq, m.Seq)
	}
}
