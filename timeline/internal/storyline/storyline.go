// Package storyline returns the story of an object and its owned objects (package story), and of its rollouts.
package storyline

import (
	"context"
	"errors"
	"time"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/story"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/command"
	"github.com/kuberewind/kuberewind/timeline/internal/find"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
)

// mostRows bounds the rows of an answer. More counts the rows that it cuts.
const mostRows = 1000

// An Answer is the story. Its times are milliseconds since 1970.
type Answer struct {
	lack.Answer
	Object   find.Ref              `json:"object"`
	Rows     []Row                 `json:"rows"` // the newest
	More     int                   `json:"more"` // number of earlier rows
	Hidden   map[class.Class]int64 `json:"hidden"`
	Rollouts []Rollout             `json:"rollouts"`
	Command  string                `json:"command"`
}

// A Row is one delta of the story.
type Row struct {
	find.Ref
	Seq       int64       `json:"seq"`
	Time      int64       `json:"time"`
	Estimated bool        `json:"estimated"`
	Depth     int         `json:"depth"`
	Type      string      `json:"type"`
	Class     class.Class `json:"class"`
	Manager   string      `json:"manager"`
	Event     *Event      `json:"event,omitempty"` // for a row of an Event about the object
}

// An Event is the content of an Event.
type Event struct {
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
	Count   string `json:"count"`
}

// A Rollout is the change of a Deployment from one template to the next.
type Rollout struct {
	find.Ref
	Start    *Moment   `json:"start"`
	End      *Moment   `json:"end"`
	Outcome  string    `json:"outcome"` // "" if it still runs
	Revision string    `json:"revision"`
	Troubles []Trouble `json:"troubles"`
}

// A Moment is a delta at which something began or ended.
type Moment struct {
	Seq     int64  `json:"seq"`
	Time    int64  `json:"time"`
	Manager string `json:"manager"`
}

// A Trouble is the reason why a rollout was stuck.
type Trouble struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
	At      Moment `json:"at"`
	Objects int    `json:"objects"`
}

// Read returns the story of an object in a window.
func Read(ctx context.Context, rec *history.Record, name find.Name, w ask.Window, cluster string, now time.Time) (*Answer, error) {
	state, err := lack.Read(ctx, rec, history.Scope{})
	if err != nil {
		return nil, err
	}
	end, err := rec.Timeline().LastBefore(ctx, w.To)
	if err != nil {
		return nil, err
	}
	life, err := find.Life(ctx, rec, name, end)
	if err != nil {
		return nil, err
	}
	a := &Answer{
		Answer: state.Answer(w, now), Object: find.RefOf(life), Rows: []Row{}, Hidden: map[class.Class]int64{}, Rollouts: []Rollout{},
		Command: command.OfLife(cluster, "story", &life).Time("--since", w.From).Time("--until", w.To).String(),
	}
	first, last, err := rec.Timeline().Between(ctx, w.From, w.To)
	if err != nil {
		return nil, err
	}
	if first > last {
		return a, nil
	}
	scope := history.Scope{Streams: []int32{life.Stream.ID}, Namespace: life.Namespace, Name: life.Name}
	s, err := story.Find(ctx, rec, history.Query{Scope: scope, FromSeq: first, ToSeq: min(last, a.Seq)})
	if err == nil {
		err = s.Search(ctx)
	}
	if err != nil {
		return nil, err
	}
	return a, a.read(ctx, s, w)
}

// read reads the story. The range of seqs also holds deltas that happened before or after the window.
func (a *Answer) read(ctx context.Context, s *story.Story, w ask.Window) error {
	for e, err := range s.Entries(ctx) {
		var damaged *history.DamagedError
		var missing *history.MissingDayError
		switch {
		case errors.As(err, &missing):
			a.Lost(missing)
			continue
		case err != nil && !errors.As(err, &damaged):
			return err
		case damaged != nil:
			a.Incomplete = append(a.Incomplete, lack.DamagedAt(e.Span.Estimate, damaged))
		}
		if w.Holds(e.Span.Estimate) {
			a.add(&e)
		}
	}
	a.More = max(len(a.Rows)-mostRows, 0)
	a.Rows = a.Rows[a.More:]
	for _, r := range s.Rollouts() {
		if r.Start != nil && !r.Start.Span.Estimate.Before(w.To) || r.End != nil && r.End.Span.Estimate.Before(w.From) {
			continue
		}
		a.Rollouts = append(a.Rollouts, rolloutOf(r))
	}
	return nil
}

func (a *Answer) add(e *story.Entry) {
	c := class.OfVersion(&e.Version)
	if c == class.Heartbeat {
		a.Hidden[c]++
		return
	}
	row := Row{
		Ref: find.RefOf(e.Object.Life), Seq: e.Seq, Time: e.Span.Estimate.UnixMilli(), Estimated: !e.ObservedAt.Equal(e.OccurredAt), Depth: e.Object.Depth,
		Type: string(e.Type), Class: c, Manager: e.Manager,
	}
	if e.Event != nil {
		row.Event = &Event{e.Event.Type, e.Event.Reason, e.Event.Message, e.Event.Count}
	}
	a.Rows = append(a.Rows, row)
}

func rolloutOf(r *story.Rollout) Rollout {
	found := Rollout{Ref: find.RefOf(r.Deployment.Life), Start: momentOf(r.Start), End: momentOf(r.End), Outcome: string(r.Outcome), Revision: r.Revision, Troubles: []Trouble{}}
	for _, t := range r.Troubles {
		found.Troubles = append(found.Troubles, Trouble{t.Reason, t.Message, *momentOf(t.At), len(t.Objects)})
	}
	return found
}

func momentOf(m *story.Moment) *Moment {
	if m == nil {
		return nil
	}
	return &Moment{m.Seq, m.Span.Estimate.UnixMilli(), m.Manager}
}
