package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/history"
)

// Settings say how large the records are.
type Settings struct {
	Deltas   []int64 // of the smaller record, and of those that continue it
	Live     int     // to a tenth; as many as there are, once the records are made
	Interval int64   // deltas between two checkpoints, an even number; 0 means the recorder's default, which is then put here
}

func (s *Settings) validate() error {
	switch {
	case len(s.Deltas) < 2 || !slices.IsSorted(s.Deltas):
		return errors.New("the deltas of records have to be two numbers or more, each larger than the last")
	case s.Deltas[0] < 2*int64(s.Live):
		return errors.New("there have to be at least twice as many deltas as live objects: the first list makes one of each")
	}
	return nil
}

// days is how many days the smallest record lasts.
const days = 3

// A bench makes the records and measures them.
type bench struct {
	Settings
	*measure.Run
	server *measure.Server // that the records are made on; its CPU time counts

	fleet   *fleet
	records []*record                // smaller first
	answers map[answerOf]fingerprint // that all ways have to give
}

// rebuilds measures what reading the record costs. It makes synthetic records of two sizes; the smaller is the beginning of the
// larger. It rebuilds the cluster of each at random instants: with checkpoints, without, and from a plain table of full rows.
// The answers have to be equal.
//
// The sink writes the records as the recorder does, with the recorder's checkpoints. Each record goes with its server. The
// server waits for no disk, which only writing would feel. No read meets a cold cache.
func rebuilds(ctx context.Context, run *measure.Run) error {
	settings := map[string]Settings{
		quick: {Deltas: []int64{50_000, 100_000}, Live: 1000}, middle: {Deltas: []int64{90_000, 300_000}, Live: 20_000}, full: {Deltas: []int64{300_000, 3_000_000}, Live: 20_000},
	}[strings.Replace(run.Report.Size, largest, full, 1)]
	return run.OnServer(ctx, measure.ServerOptions{}, func(server *measure.Server) error {
		b := &bench{Settings: settings, Run: run, server: server}
		return b.run(ctx)
	})
}

// run makes everything and measures. The report is as far as it came.
func (b *bench) run(ctx context.Context) error {
	defer b.close()
	if err := b.prepare(ctx); err != nil {
		return err
	}
	return b.measure(ctx)
}

// prepare makes the records, and opens them. The caller calls close, also after an error.
func (b *bench) prepare(ctx context.Context) (err error) {
	if err := b.validate(); err != nil {
		return err
	}
	b.answers = make(map[answerOf]fingerprint)
	last := b.Deltas[len(b.Deltas)-1]
	if b.fleet, err = newFleet(b.Report.Seed, b.Live, last, int(b.Deltas[0]/days)); err != nil {
		return err
	}
	defer b.fleet.stop()
	b.Live = int(b.fleet.live)
	if b.Interval == 0 {
		b.Interval = checkpoint.Interval(int64(b.Live))
	}
	b.Interval += b.Interval % 2 // half of it is measured too
	if b.wholeIntervals(b.Deltas[0], 2*b.Interval) < 1 {
		return fmt.Errorf("the smallest record needs two intervals of %d deltas between checkpoints after its first lists, because intervals of twice the length are measured too", b.Interval)
	}
	if err := b.make(ctx); err != nil {
		return err
	}
	return b.open(ctx)
}

// make records what the fleet does. At the end of a smaller record its database is copied, so that all sizes can be measured in
// turn.
func (b *bench) make(ctx context.Context) error {
	url, err := b.server.NewRecord(ctx)
	if err != nil {
		return err
	}
	w, err := newWriter(ctx, url, b.fleet, true)
	if err != nil {
		return err
	}
	defer w.close()
	c := b.newCheckpoints(w)
	told := int64(0)
	w.cut, w.after = c.due, func(ctx context.Context, seq int64) error {
		if tenth := seq / max(b.Deltas[len(b.Deltas)-1]/10, 1); tenth > told {
			told = tenth
			b.Say("%s deltas recorded", measure.Number(float64(seq)))
		}
		return c.after(ctx, seq)
	}
	for i, deltas := range b.Deltas {
		if err := w.record(ctx, deltas); err != nil {
			return err
		}
		if i == 0 {
			if err := c.keepUsual(ctx); err != nil {
				return err
			}
		}
		r := &record{deltas: deltas, url: url}
		if i < len(b.Deltas)-1 {
			w.idle()
			if r.url, err = b.server.Copy(ctx, url); err != nil {
				return err
			}
		}
		b.records = append(b.records, r)
	}
	return nil
}

func (b *bench) open(ctx context.Context) error {
	for _, r := range b.records {
		var err error
		if r.pool, err = pgxpool.New(ctx, r.url); err != nil {
			return err
		}
		if _, err := r.pool.Exec(ctx, `VACUUM (ANALYZE)`); err != nil {
			return err
		}
		if r.history, err = history.Open(ctx, r.url, history.Options{}); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) close() {
	for _, r := range b.records {
		if r.history != nil {
			r.history.Close()
		}
		if r.pool != nil {
			r.pool.Close()
		}
	}
}

// An instant is where a round asks for the cluster, the same in every record: how far after a checkpoint decides what a rebuild takes.
type instant struct {
	place float64 // which of the whole intervals between checkpoints, as a share of all
	phase float64 // how much of that interval has passed
}

// instants gives the instants of n rounds. Each round has another of n phases, at even distances, and another of n equal parts
// of the record. The seed decides both orders, so that an interrupted run goes on with the same. A warm-up round takes the
// middle.
func (b *bench) instants(n int) (at func(round int) instant) {
	random := rand.New(rand.NewPCG(b.Report.Seed, uint64(n)))
	phases, places := random.Perm(n), random.Perm(n)
	all := make([]instant, n)
	for i := range all {
		all[i] = instant{place: (float64(places[i]) + random.Float64()) / float64(n), phase: (float64(phases[i]) + 0.5) / float64(n)}
	}
	return func(round int) instant {
		if round < 0 {
			return instant{place: 0.5, phase: 0.5}
		}
		return all[round]
	}
}

// wholeIntervals is how many there are in so many deltas. No instant lies after the last of them: it would be nearer to its
// checkpoint than the others.
func (b *bench) wholeIntervals(deltas, interval int64) int64 {
	return (deltas - int64(b.Live)) / interval
}

// seqAt finds an instant in a record that has a checkpoint after the first lists, and one in every interval from there on.
func (b *bench) seqAt(r *record, interval int64, at instant) int64 {
	begun := int64(at.place * float64(b.wholeIntervals(r.deltas, interval)))
	return int64(b.Live) + begun*interval + int64(at.phase*float64(interval))
}
