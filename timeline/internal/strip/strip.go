// Package strip counts deltas in bars of one width.
//
// It counts from the newest delta backwards, for as long as it may. The uncounted rest is a stretch of the answer, and a
// cursor. The answer to the cursor holds only the newer counts: the page adds the bars up.
//
// It uses what was counted ahead (package activity), if the filter names nothing but namespaces, resources, a manager and
// classes. Deltas that are not counted yet are read one by one: the newest, and all of them if nobody counts. The answer says
// so.
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

// A Query asks for the bars of a window.
type Query struct {
	Window ask.Window
	Bars   int64 // at least, if the window has as many seconds
	Filter ask.Filter
	Cursor string // of the answer before; "" at first
}

// A Strip is the answer. Bar i counts what occurred from From + i × StepMS on, for StepMS.
type Strip struct {
	lack.Answer
	From     int64                 `json:"from"`
	To       int64                 `json:"to"`
	StepMS   int64                 `json:"stepMs"`
	Classes  []class.Class         `json:"classes"`
	Counts   [][]int64             `json:"counts"`   // of each class, of each bar
	FirstSeq []int64               `json:"firstSeq"` // of each bar, 0 if it is empty
	LastSeq  []int64               `json:"lastSeq"`
	Hidden   map[class.Class]int64 `json:"hidden"`
	Before   map[class.Class]int64 `json:"before"` // in the window that was asked for, and dated before the record: a first list finds objects that are older
	Next     string                `json:"next,omitempty"`
	Ahead    *Ahead                `json:"ahead,omitempty"` // nil if nothing that is counted ahead can be used
}

// A Counter counts the deltas of a record.
type Counter struct {
	Record *history.Record
	Reader *marks.Reader
	// Patience is for how long an answer may be counted.
	Patience time.Duration
}

// Count gives the bars.
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
	reading.Tell(&s.Answer)
	if left >= at.first {
		rest := at
		rest.last = left
		s.Next = rest.String()
		err = c.unread(ctx, s, rest)
	}
	s.tell(q)
	return s, err
}

// unread names the stretch that was not counted.
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

// A progress is how far the counting of a window is. As text it is the cursor.
type progress struct {
	window      ask.Window
	since       time.Time // where the window would begin if the record did not begin later
	step        time.Duration
	first, last int64 // seqs that are to be counted
	head        int64 // where the record ended when it began
}

func (p progress) String() string {
	return fmt.Sprintf("%d-%d-%d-%d-%d-%d-%d", p.since.UnixMilli(), p.window.From.UnixMilli(), p.window.To.UnixMilli(), p.step.Milliseconds(), p.first, p.last, p.head)
}

// begin finds what is to be counted. A window ends with the record: nothing is known of what is outside.
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

// mostBars is more than a screen has pixels.
const mostBars = 10_000

// resumed reads a cursor. It refuses a cursor that no answer gave: times that cannot be subtracted, bars that are not whole,
// seqs that the record lacks.
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

// shown are the classes that have bars.
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
