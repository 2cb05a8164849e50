package history

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/bounds"
)

// A Span bounds the time at which a delta happened, both ends included. Estimate is the best single answer within them.
// Contradictory says that clocks of servers disagree there: then the estimate is OccurredAt, and the bounds are only the
// ends of the pause.
type Span = bounds.Span

// Times finds when the deltas of pauses happened, as far as the order of resource versions proves it. It reads a pause at
// the first request for one of its deltas. Several goroutines may use it at once.
//
// I4: resource versions of different resources are compared only if it is established that one etcd serves both.
type Times struct {
	view *view // through the pool

	mu      sync.Mutex // protects what follows
	pauses  []Pause
	windows map[int64]*window // by the epoch of the pause
}

// A window holds the recovered deltas of a pause.
type window struct {
	from      time.Time // when the pause began
	last      int64     // last seq that the survey read
	spans     map[int64]estimated
	resources int // the largest number of resources that one etcd serves
}

// estimated is the span of a delta, and its occurred_at on record.
type estimated struct {
	Span
	recorded time.Time
}

// Times returns a Times of the record. It reads nothing yet.
func (r *Record) Times() *Times { return &Times{view: r.view, windows: make(map[int64]*window)} }

// Of returns the span of a delta. A delta that was observed live happened when it was observed.
func (t *Times) Of(ctx context.Context, d *Delta) (Span, error) {
	if d.OccurredAt.Equal(d.ObservedAt) {
		return Span{NotBefore: d.OccurredAt, NotAfter: d.OccurredAt, Estimate: d.OccurredAt}, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	w, err := t.windowOf(ctx, d)
	if err != nil {
		return Span{}, err
	}
	if found, ok := w.spans[d.Seq]; ok {
		return found.Span, nil
	}
	return Span{NotBefore: w.from, NotAfter: d.ObservedAt, Estimate: d.OccurredAt}, nil
}

// windowOf returns the window of the last pause before a delta, or an empty one.
func (t *Times) windowOf(ctx context.Context, d *Delta) (w *window, err error) {
	if o := outageBefore(t.pauses, d.Seq); o != nil {
		if w = t.windows[o.Epoch]; w != nil && d.Seq <= w.last {
			return w, nil
		}
	}
	if t.pauses, err = t.view.pauses(ctx); err != nil {
		return nil, err
	}
	o := outageBefore(t.pauses, d.Seq)
	if o == nil {
		return &window{}, nil
	}
	if w, err = newWindow(ctx, t.view, o); err == nil {
		t.windows[o.Epoch] = w
	}
	return w, err
}

// An outage is a pause, together with what surrounds it.
type outage struct {
	Pause
	began time.Time // before the pause, if streams may not have caught up on an earlier one
	until int64     // last seq before the next pause
}

// resumedWithin is how long a recorder may run before its streams have caught up. If it stops earlier, the outage began
// with the earlier pause.
const resumedWithin = 30 * time.Second

// outageBefore returns the last outage before a delta, or nil.
func outageBefore(pauses []Pause, seq int64) (o *outage) {
	for _, p := range pauses {
		if p.AfterSeq >= seq {
			o.end(p.AfterSeq)
			break
		}
		began := p.From
		if o != nil && p.From.Sub(o.To) < resumedWithin {
			began = o.began
		}
		o = &outage{Pause: p, began: began, until: maxSeq}
	}
	return o
}

func (o *outage) end(seq int64) {
	if o != nil {
		o.until = seq
	}
}

// newWindow bounds the times of what was recovered after a pause.
func newWindow(ctx context.Context, v *view, o *outage) (*window, error) {
	s, err := surveyPause(ctx, v, o)
	if err != nil {
		return nil, fmt.Errorf("bound the times of the pause from %s to %s: %w", stamp(o.From), stamp(o.To), err)
	}
	w := &window{from: o.began, last: s.last, spans: make(map[int64]estimated)}
	if s.etcds == nil || s.reversed(o) {
		return w, nil
	}
	if err := s.read(ctx, v); err != nil {
		return nil, err
	}
	for _, c := range s.chains {
		for i, span := range bounds.Spans(o.began, c.deltas) {
			if d := &c.deltas[i]; !d.Estimate.Equal(d.Observed) {
				w.spans[c.seqs[i]] = estimated{Span: span, recorded: d.Estimate}
			}
		}
		w.resources = max(w.resources, len(c.resources))
	}
	return w, nil
}

// A pauseSurvey collects the facts that bound the deltas of a pause.
type pauseSurvey struct {
	query  Query
	last   int64           // last seq that the survey read
	etcds  map[int32]int32 // by stream; nil if nothing was recovered
	gaps   []Gap
	chains map[int32]*numbering // by etcd
}

// A numbering holds the deltas that one etcd numbered.
type numbering struct {
	seqs      []int64
	deltas    []bounds.Delta
	resources map[string]bool
}

func surveyPause(ctx context.Context, pool *view, o *outage) (s *pauseSurvey, err error) {
	s = &pauseSurvey{chains: make(map[int32]*numbering)}
	s.query = Query{FromSeq: o.AfterSeq + 1, From: o.From, To: o.To.Add(caughtUpWithin)}
	err = pool.inSnapshot(ctx, func(v *view) error {
		extent, err := v.extent(ctx)
		if err != nil {
			return err
		}
		s.last = min(o.until, extent.LastSeq)
		// Deltas after the last recovered one do not improve the bounds.
		err = v.db.QueryRow(ctx, `
			SELECT coalesce(max(seq), 0) FROM kuberewind.record_deltas
			WHERE cluster = $1 AND seq BETWEEN $2 AND $3 AND observed_at BETWEEN $4 AND $5 AND source = $6 AND occurred_at <> observed_at`,
			v.cluster.Number, s.query.FromSeq, s.last, s.query.From, s.query.To, delta.NumberWatch).Scan(&s.query.ToSeq)
		if err != nil || s.query.ToSeq == 0 {
			return err
		}
		return s.compare(ctx, v, extent)
	})
	return s, err
}

// compare finds which streams share an etcd.
func (s *pauseSurvey) compare(ctx context.Context, v *view, extent Extent) error {
	if err := v.refreshStreams(ctx); err != nil {
		return err
	}
	streams, err := v.streamsIn(ctx, Scope{})
	if err != nil {
		return err
	}
	if s.gaps, err = v.gaps(ctx, Scope{}); err != nil {
		return err
	}
	s.etcds, err = (&etcdSurvey{view: v, extent: extent}).etcds(ctx, streams, s.gaps)
	return err
}

// reversed reports whether the server's history was rolled back during the outage or the recovery. Resource versions were
// then used twice.
func (s *pauseSurvey) reversed(o *outage) bool {
	return slices.ContainsFunc(s.gaps, func(g Gap) bool {
		return g.Cause == delta.CauseHistoryReversed && (g.ToAt.IsZero() || !g.ToAt.Before(o.began)) && !g.FromAt.After(s.query.To)
	})
}

// read collects the deltas of each etcd. A delta on a missing day bounds nothing. A damaged delta proves no time.
func (s *pauseSurvey) read(ctx context.Context, v *view) error {
	for version, err := range v.versions(ctx, s.query) {
		var damaged *DamagedError
		switch {
		case isMissingDay(err):
		case err != nil && !errors.As(err, &damaged):
			return err
		default:
			s.add(&version)
		}
	}
	return nil
}

func (s *pauseSurvey) add(v *Version) {
	rv, err := strconv.ParseUint(v.RV, 10, 64)
	etcd, known := s.etcds[v.Stream.ID]
	if err != nil || !known || v.Source != delta.SourceWatch {
		return
	}
	c := s.chains[etcd]
	if c == nil {
		c = &numbering{resources: make(map[string]bool)}
		s.chains[etcd] = c
	}
	c.seqs, c.resources[v.Stream.GroupResource().String()] = append(c.seqs, v.Seq), true
	c.deltas = append(c.deltas, bounds.Delta{RV: rv, Observed: v.ObservedAt, Estimate: v.OccurredAt, Proved: s.proved(v)})
}

// proved returns the time that a version proves. If versions may be missing, this version need not be the one that set a
// time.
func (s *pauseSurvey) proved(v *Version) time.Time {
	switch {
	case v.Doc == nil || s.incomplete(v):
		return time.Time{}
	case v.Before != nil:
		return bounds.Changed(v.Before, v.Doc)
	case v.Seq == v.ObjectID && v.Type == delta.Added:
		return bounds.Created(v.Doc)
	}
	return time.Time{}
}

func (s *pauseSurvey) incomplete(v *Version) bool {
	return slices.ContainsFunc(s.gaps, func(g Gap) bool {
		return g.Stream.ID == v.Stream.ID && g.Outcome != delta.OutcomeResumed && !g.FromAt.IsZero() &&
			!v.ObservedAt.Before(g.FromAt) && (g.ToAt.IsZero() || !v.ObservedAt.After(g.ToAt))
	})
}
