package main

import (
	"context"
	"fmt"
	"runtime"

	"github.com/kuberewind/kuberewind/history"
)

func (b *bench) measure(ctx context.Context) error {
	if err := b.open(ctx); err != nil {
		return err
	}
	b.report.Settings = b.Settings
	if err := b.records[0].pool.QueryRow(ctx, `SHOW server_version`).Scan(&b.report.PostgreSQL); err != nil {
		return err
	}
	for _, r := range b.records {
		var err error
		if r.result.Sizes, err = sizesOf(ctx, r.pool); err != nil {
			return err
		}
	}
	steps := []struct {
		what string
		run  func(context.Context) error
	}{
		{"the ways to rebuild", b.ways}, {"rebuilds", b.rebuilds}, {"memory", b.memory}, {"one object", b.watched}, {"intervals of checkpoints", b.intervals},
	}
	for _, s := range steps {
		b.say("measuring %s", s.what)
		if err := s.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", s.what, err)
		}
	}
	b.report.judge()
	return nil
}

// ways compares all ways at a few instants, in turn, and their answers with each other. The first turn warms up and does not count.
func (b *bench) ways(ctx context.Context) error {
	for turn, place := range append([]float64{0.5}, b.instants(b.Instants)...) {
		for _, r := range b.records {
			var kept RecordResult
			into := r.result
			if turn == 0 {
				into = &kept
			}
			if err := b.turn(ctx, r, b.seqAt(r, place), into); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *bench) turn(ctx context.Context, r *record, seq int64, into *RecordResult) error {
	way, err := b.rebuild(ctx, r, seq, history.RebuildOptions{}, &into.Rebuild, &into.Tail)
	if err != nil {
		return err
	}
	want := fingerprintOf(way.snapshot)
	var read []int64
	if way, err = b.rebuild(ctx, r, seq, history.RebuildOptions{NoCheckpoint: true}, &into.NoCheckpoint, &read); err != nil {
		return err
	}
	if err := sameSnapshot(seq, "a rebuild without checkpoints", fingerprintOf(way.snapshot), want); err != nil {
		return err
	}
	for i, p := range plains {
		way, err = b.measured(&into.DistinctOn[i], func() (built, error) { return fromFullRows(ctx, r.pool, p, seq) })
		if err != nil {
			return err
		}
		if err := sameSnapshot(seq, "DISTINCT ON by "+p.name, fingerprintOf(way.snapshot), want); err != nil {
			return err
		}
	}
	return nil
}

// rebuild measures one rebuild, at the time of a seq.
func (b *bench) rebuild(ctx context.Context, r *record, seq int64, o history.RebuildOptions, into *Cost, tail *[]int64) (built, error) {
	way, err := b.measured(into, func() (built, error) { return rebuild(ctx, r.history, history.At(b.fleet.at(seq)), o) })
	*tail = append(*tail, way.stats.Tail)
	return way, err
}

// rebuilds measures more instants of the fast way, the records in turn.
func (b *bench) rebuilds(ctx context.Context) error {
	for _, place := range b.instants(2 * b.Instants) {
		for _, r := range b.records {
			if _, err := b.rebuild(ctx, r, b.seqAt(r, place), history.RebuildOptions{}, &r.result.Rebuild, &r.result.Tail); err != nil {
				return err
			}
		}
	}
	return nil
}

// memory states what a snapshot takes while it is held, and what a process takes at most that makes one.
func (b *bench) memory(ctx context.Context) error {
	for _, r := range b.records {
		seq := b.seqAt(r, 0.5)
		before := heap()
		way, err := rebuild(ctx, r.history, history.At(b.fleet.at(seq)), history.RebuildOptions{})
		if err != nil {
			return err
		}
		r.result.HeldBytes = int64(heap()) - int64(before)
		r.result.Objects = way.snapshot.Len()
		runtime.KeepAlive(way.snapshot)
		if b.peak != nil {
			if r.result.PeakBytes, err = b.peak(ctx, r.url, seq); err != nil {
				return err
			}
		}
	}
	return nil
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what finalizers and pools held on to
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// intervals measures the smallest record with checkpoints at half, whole and twice the interval.
func (b *bench) intervals(ctx context.Context) error {
	r := b.records[0]
	places := b.instants(2 * b.Instants)
	for _, interval := range []int64{b.Interval / 2, b.Interval, 2 * b.Interval} {
		if err := keep(ctx, r.pool, int64(b.Live), interval); err != nil {
			return err
		}
		result := IntervalResult{Deltas: interval}
		infos, err := r.history.Checkpoints(ctx)
		if err != nil {
			return err
		}
		for _, info := range infos {
			result.Bytes += info.Bytes
		}
		result.Checkpoints = len(infos)
		for _, place := range places {
			if _, err := b.rebuild(ctx, r, b.seqAt(r, place), history.RebuildOptions{}, &result.Rebuild, &result.Tail); err != nil {
				return err
			}
		}
		b.report.Intervals = append(b.report.Intervals, result)
	}
	return nil
}
