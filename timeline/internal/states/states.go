// Package states returns the bars of lanes: the states of each object in a window, with their beginnings and ends.
//
// A bar begins with the delta that brought the state. In a gap of its stream the state is unknown, whatever it was before.
package states

import (
	"context"
	"errors"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/state"
)

// MostLanes is the largest number of lanes in one request: their versions are folded.
const MostLanes = 100

// A Query selects the bars of lanes.
type Query struct {
	Window ask.Window
	Lanes  []int64
}

// An Answer holds the bars. Its times are milliseconds after From.
type Answer struct {
	lack.Answer
	From  int64  `json:"from"`
	To    int64  `json:"to"`
	Lanes []Lane `json:"lanes"`
}

// A Lane has columns of one length: a bar in each row.
type Lane struct {
	ID    int64         `json:"id"`
	From  []int64       `json:"from"`
	To    []int64       `json:"to"`
	State []state.State `json:"state"`
	Text  []string      `json:"text"`
}

// A bar is a state of an object, from a time on.
type bar struct {
	from  time.Time
	state state.State
	text  string
}

// Find returns the bars.
func Find(ctx context.Context, rec *history.Record, q Query, now time.Time) (*Answer, error) {
	whole, err := lack.Read(ctx, rec, history.Scope{})
	if err != nil {
		return nil, err
	}
	a := &Answer{Answer: whole.Answer(q.Window, now), From: q.Window.From.UnixMilli(), To: q.Window.To.UnixMilli(), Lanes: []Lane{}}
	w := q.Window.Clamped(whole.Extent.FirstAt, whole.Extent.LastAt.Add(time.Millisecond))
	f := &folding{rec: rec, window: w, bars: map[int64][]bar{}, lives: map[int64]history.Life{}}
	if err := f.read(ctx, q.Lanes, a.Seq); err != nil {
		return nil, err
	}
	a.Lost(f.missing...)
	gaps, err := rec.Completeness().Gaps(ctx, history.Scope{})
	if err != nil {
		return nil, err
	}
	for _, id := range q.Lanes {
		a.Lanes = append(a.Lanes, f.lane(id, a.From, gaps))
	}
	return a, nil
}

// A folding reads the versions of lanes.
type folding struct {
	rec     *history.Record
	window  ask.Window
	bars    map[int64][]bar
	lives   map[int64]history.Life
	missing []*history.MissingDayError
}

func (f *folding) read(ctx context.Context, ids []int64, head int64) error {
	for life, err := range f.rec.Lives(ctx, history.LifeQuery{ObjectIDs: ids}) {
		if err != nil {
			return err
		}
		f.lives[life.ObjectID] = life
	}
	first, last, err := f.rec.Timeline().Between(ctx, f.window.From, f.window.To)
	if err != nil {
		return err
	}
	before, missing, err := f.rec.Lookup().LastVersions(ctx, ids, first-1)
	if err != nil {
		return err
	}
	f.missing = append(f.missing, missing)
	for id, doc := range before {
		s, text := state.Of(f.lives[id].Stream.GroupResource().String(), doc)
		f.add(id, f.window.From, s, text)
	}
	if first > last {
		return nil
	}
	for v, err := range f.rec.Versions(ctx, history.Query{ObjectIDs: ids, FromSeq: first, ToSeq: min(last, head)}) {
		if err := f.addVersion(&v, err); err != nil {
			return err
		}
	}
	return nil
}

// addVersion adds the state of a version. A version that cannot be folded is unknown.
func (f *folding) addVersion(v *history.Version, err error) error {
	var damaged *history.DamagedError
	var missing *history.MissingDayError
	switch {
	case errors.As(err, &missing):
		f.missing = append(f.missing, missing)
	case err != nil && !errors.As(err, &damaged):
		return err
	case !v.OccurredAt.Before(f.window.To): // It lies between deltas that were recovered later.
	case damaged != nil:
		f.add(v.ObjectID, v.OccurredAt, state.Unknown, "damaged")
	case v.Type == delta.Deleted:
		f.add(v.ObjectID, v.OccurredAt, state.Gone, "")
	default:
		s, text := state.Of(v.Stream.GroupResource().String(), v.Doc)
		f.add(v.ObjectID, v.OccurredAt, s, text)
	}
	return nil
}

// add begins a bar, unless it equals the last one.
func (f *folding) add(id int64, from time.Time, s state.State, text string) {
	bars := f.bars[id]
	if n := len(bars); n > 0 && bars[n-1].state == s && bars[n-1].text == text {
		return
	}
	f.bars[id] = append(bars, bar{from, s, text})
}

func (f *folding) lane(id, origin int64, gaps []history.Gap) Lane {
	l := Lane{ID: id, From: []int64{}, To: []int64{}, State: []state.State{}, Text: []string{}}
	bars := f.bars[id]
	for i, b := range bars {
		until := f.window.To
		if i+1 < len(bars) {
			until = bars[i+1].from
		}
		if b.state == state.Gone || !b.from.Before(until) && i+1 < len(bars) {
			continue
		}
		f.cut(&l, b, until, f.of(id, gaps), origin)
	}
	return l
}

// of returns the gaps of the stream of a life, in the order of time.
func (f *folding) of(id int64, gaps []history.Gap) (found []history.Gap) {
	for i := range gaps {
		g := &gaps[i]
		if life := f.lives[id]; life.Stream != nil && g.Stream != nil && g.Stream.ID == life.Stream.ID && g.Outcome != delta.OutcomeResumed && !g.FromAt.IsZero() {
			found = append(found, *g)
		}
	}
	return found
}

// cut adds a bar to a lane, and marks the gaps in it as unknown.
func (f *folding) cut(l *Lane, b bar, until time.Time, gaps []history.Gap, origin int64) {
	put := func(from, to time.Time, s state.State, text string) {
		if from.Before(to) {
			l.From, l.To = append(l.From, from.UnixMilli()-origin), append(l.To, to.UnixMilli()-origin)
			l.State, l.Text = append(l.State, s), append(l.Text, text)
		}
	}
	from := b.from
	for i := range gaps {
		began, ended := gaps[i].FromAt, gaps[i].ToAt
		if ended.IsZero() || ended.After(until) {
			ended = until
		}
		if began.Before(from) {
			began = from
		}
		if began.Before(ended) {
			put(from, began, b.state, b.text)
			put(began, ended, state.Unknown, "not recorded: "+string(gaps[i].Cause))
			from = ended
		}
	}
	put(from, until, b.state, b.text)
}
