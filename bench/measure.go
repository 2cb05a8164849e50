package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/history"
)

// The measured quantities of reading.
const (
	onTheClock = "time"
	ofCPU      = "CPU, with PostgreSQL"
	inTail     = "tail"
)

// measure runs all experiments on the records.
func (b *bench) measure(ctx context.Context) error {
	var buffers string
	if err := b.records[0].pool.QueryRow(ctx, `SHOW shared_buffers`).Scan(&buffers); err != nil {
		return err
	}
	for _, e := range []measure.Experiment{b.sizes(), b.ways(), b.instantsMore(), b.memory(), b.oneObject(), b.intervals()} {
		e.Data = fmt.Sprintf("generated: %s live objects; %s of shared buffers, the rest in the system's cache", measure.Number(float64(b.Live)), buffers)
		if err := b.Do(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func timesAndTail() []measure.Quantity {
	return []measure.Quantity{{Name: onTheClock, Unit: "ms"}, {Name: ofCPU, Unit: "ms"}, {Name: inTail, Unit: "deltas"}}
}

func rebuildOf(r *record) string    { return "rebuild out of " + r.String() }
func foldingOf(r *record) string    { return "without checkpoints, " + r.String() }
func (p plain) of(r *record) string { return "DISTINCT ON by " + string(p) + ", " + r.String() }

// bounds are what a record of so many deltas must reach, and the aim. Of others it is only reported.
var bounds = map[int64]struct{ atLeast, aim float64 }{300_000: {3, 8}, 3_000_000: {8, 20}}

// ways compares all ways at a few instants, and their answers with each other. Of the two spellings of DISTINCT ON the faster one counts: against
// both the ratio has to hold.
func (b *bench) ways() measure.Experiment {
	e := measure.Experiment{Name: "rebuild", Title: "Rebuilding a cluster at random instants", Quantities: timesAndTail(), WarmUp: true}
	instants := b.instants(b.Rounds)
	for _, r := range b.records {
		at := func(round int) int64 { return b.seqAt(r, b.Interval, instants(round)) }
		e.Ways = append(e.Ways,
			measure.Way{Name: rebuildOf(r), Run: func(ctx context.Context, round int) (measure.Values, error) {
				return b.rebuild(ctx, r, at(round), history.RebuildOptions{})
			}},
			measure.Way{Name: foldingOf(r), Run: func(ctx context.Context, round int) (measure.Values, error) {
				return b.rebuild(ctx, r, at(round), history.RebuildOptions{NoCheckpoint: true})
			}})
		must := bounds[r.deltas]
		for _, p := range plains {
			e.Ways = append(e.Ways, measure.Way{Name: p.of(r), Run: func(ctx context.Context, round int) (measure.Values, error) {
				values, _, err := b.measured(r, at(round), string(p), func() (built, error) { return fromFullRows(ctx, r.pool, p, at(round)) })
				return values, err
			}})
			e.Compare = append(e.Compare,
				measure.Comparison{Number: "7", What: p.of(r) + ", to rebuild", Quantity: onTheClock, Of: p.of(r), To: rebuildOf(r), AtLeast: must.atLeast, Aim: must.aim},
				measure.Comparison{Number: "7", What: p.of(r) + ", to rebuild, of CPU", Quantity: ofCPU, Of: p.of(r), To: rebuildOf(r)})
		}
	}
	return e
}

// instantsMore measures the fast way at more instants.
func (b *bench) instantsMore() measure.Experiment {
	e := measure.Experiment{Name: "rebuild-size", Title: "Rebuilding out of more deltas", Quantities: timesAndTail(), WarmUp: true, Rounds: 3 * b.Rounds}
	at := b.instants(e.Rounds)
	for _, r := range b.records {
		e.Ways = append(e.Ways, measure.Way{Name: rebuildOf(r), Run: func(ctx context.Context, round int) (measure.Values, error) {
			return b.rebuild(ctx, r, b.seqAt(r, b.Interval, at(round)), history.RebuildOptions{})
		}})
	}
	small, large := rebuildOf(b.records[0]), rebuildOf(b.records[len(b.records)-1])
	e.Compare = []measure.Comparison{
		{Number: "7", What: "largest record to smallest", Quantity: onTheClock, Of: large, To: small, AtMost: 1.3, Aim: 1.05},
		{Number: "7", What: "largest record to smallest, of CPU", Quantity: ofCPU, Of: large, To: small},
	}
	return e
}

// rebuild measures one rebuild, at the time of a seq.
func (b *bench) rebuild(ctx context.Context, r *record, seq int64, o history.RebuildOptions) (measure.Values, error) {
	values, way, err := b.measured(r, seq, "a rebuild", func() (built, error) { return rebuild(ctx, r.history, history.At(b.fleet.at(seq)), o) })
	if err != nil {
		return nil, err
	}
	values[inTail] = float64(way.stats.Tail)
	return values, nil
}

// An answerOf says what an answer is about.
type answerOf struct {
	record *record
	seq    int64
}

// measured runs something, notes its cost, and compares its answer with that of the first way with the same question.
func (b *bench) measured(r *record, seq int64, name string, run func() (built, error)) (measure.Values, built, error) {
	before, err := b.cpu()
	if err != nil {
		return nil, built{}, err
	}
	started := time.Now()
	way, err := run()
	took := time.Since(started)
	if err != nil {
		return nil, built{}, err
	}
	after, err := b.cpu()
	if err != nil {
		return nil, built{}, err
	}
	about := answerOf{r, seq}
	got, err := fingerprintOf(way)
	if err != nil {
		return nil, built{}, err
	}
	if want, known := b.answers[about]; known {
		err = sameSnapshot(seq, name, got, want)
	} else {
		b.answers[about] = got
	}
	return measure.Values{onTheClock: millis(took), ofCPU: millis(after - before)}, way, err
}

// cpu gives what this process and the server have used so far.
func (b *bench) cpu() (time.Duration, error) {
	server, err := measure.CPUOfTree(b.server.PID)
	if err != nil {
		return 0, err
	}
	own, err := measure.CPUOfSelf()
	return server + own, err
}

// memory notes the size of a snapshot while it is held, and the peak of a process that makes one.
func (b *bench) memory() measure.Experiment {
	const held, peak, objects = "heap of a snapshot", "process at its peak", "objects"
	e := measure.Experiment{
		Name: "rebuild-memory", Title: "Memory of a rebuild",
		Quantities: []measure.Quantity{{Name: held, Unit: "bytes an object"}, {Name: peak, Unit: "bytes an object"}, {Name: objects, Unit: "in it"}},
	}
	for _, r := range b.records {
		e.Ways = append(e.Ways, measure.Way{Name: r.String(), Run: func(ctx context.Context, _ int) (measure.Values, error) {
			seq := b.seqAt(r, b.Interval, instant{place: 0.5, phase: 0.5})
			before := heap()
			way, err := rebuild(ctx, r.history, history.At(b.fleet.at(seq)), history.RebuildOptions{})
			if err != nil {
				return nil, err
			}
			n := float64(way.snapshot.Len())
			values := measure.Values{held: (float64(heap()) - float64(before)) / n, objects: n}
			runtime.KeepAlive(way.snapshot)
			most, err := peakOfChild(ctx, r.url, seq)
			values[peak] = float64(most) / n
			return values, err
		}})
	}
	return e
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools held on to
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// intervals measures the smallest record with checkpoints at half, whole and twice the interval, each at the same phases of its own.
func (b *bench) intervals() measure.Experiment {
	const perDelta, number = "checkpoints' bytes", "checkpoints"
	r := b.records[0]
	e := measure.Experiment{
		Name: "rebuild-checkpoints", Title: "Checkpoints of the smallest record, by their interval", Rounds: 2 * b.Rounds,
		Quantities: append(timesAndTail(), measure.Quantity{Name: perDelta, Unit: "a delta"}, measure.Quantity{Name: number, Unit: "kept"}),
	}
	at := b.instants(e.Rounds)
	for _, interval := range []int64{b.Interval / 2, b.Interval, 2 * b.Interval} {
		e.Ways = append(e.Ways, measure.Way{Name: "one every " + measure.Number(float64(interval)), Run: func(ctx context.Context, round int) (measure.Values, error) {
			if err := keep(ctx, r.pool, int64(b.Live), interval); err != nil {
				return nil, err
			}
			infos, err := r.history.Checkpoints(ctx)
			if err != nil {
				return nil, err
			}
			values, err := b.rebuild(ctx, r, b.seqAt(r, interval, at(round)), history.RebuildOptions{})
			if err != nil {
				return nil, err
			}
			size := int64(0)
			for _, info := range infos {
				size += info.Bytes
			}
			// Spread over the deltas of their intervals.
			values[perDelta], values[number] = float64(size)/float64(max(len(infos), 1))/float64(interval), float64(len(infos))
			return values, nil
		}})
	}
	return e
}

// sizes states what the records take on disk.
func (b *bench) sizes() measure.Experiment {
	const deltas, other, checkpoints, full = "deltas", "lives, batches and others", "checkpoints", "full rows"
	e := measure.Experiment{Name: "rebuild-disk", Title: "The same records on disk", Rounds: 1}
	for _, name := range []string{deltas, other, checkpoints, full} {
		e.Quantities = append(e.Quantities, measure.Quantity{Name: name, Unit: "bytes a delta"})
	}
	for _, r := range b.records {
		e.Ways = append(e.Ways, measure.Way{Name: r.String(), Run: func(ctx context.Context, _ int) (measure.Values, error) {
			s, err := sizesOf(ctx, r.pool)
			n := float64(r.deltas)
			return measure.Values{deltas: float64(s.Deltas) / n, other: float64(s.Other) / n, checkpoints: float64(s.Checkpoints) / n, full: float64(s.FullRows) / n}, err
		}})
	}
	return e
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
