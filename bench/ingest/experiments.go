package ingest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/checkpoint"
)

// Sizes say how much is measured.
type Sizes struct {
	Shapes    []data.Settings // what is generated
	Recording string          // of a real control plane, which is measured as well; none, if empty
	Rates     []float64       // at which it is measured how long a delta takes, in events a second
	RateLive  int             // objects that live meanwhile
	RateFor   time.Duration   // how long events come at a rate
	BoundFor  time.Duration   // and at the one at which the time is bound; as at the others, if 0
}

// Quick shows in some minutes that everything works; its figures show little else.
func Quick() Sizes {
	return Sizes{Shapes: []data.Settings{{Live: 1000, Events: 15_000}}, Rates: []float64{100, 1000, 5000}, RateLive: 1000, RateFor: 3 * time.Second}
}

// Middle is the size of the published figures. With the other measures, it runs in an hour on two cores.
func Middle() Sizes {
	return Sizes{Shapes: []data.Settings{{Live: 5000, Events: 50_000}}, Rates: []float64{100, 1000, 5000}, RateLive: 2000, RateFor: 4 * time.Second}
}

// Largest is the larger shape of Full for ten times as long: hours.
func Largest() Sizes {
	s := Full()
	s.Shapes = []data.Settings{{Live: 20_000, Events: 3_000_000}}
	return s
}

// Full is the same at large sizes: an hour. The recorder looks each minute whether a checkpoint is due, and PostgreSQL whether
// a table needs a vacuum. In runs of a fixed time, both come.
func Full() Sizes {
	return Sizes{
		Shapes: []data.Settings{{Live: 2000, Events: 300_000}, {Live: 20_000, Events: 300_000}},
		Rates:  []float64{100, 1000, 5000}, RateLive: 5000, RateFor: 30 * time.Second, BoundFor: 75 * time.Second,
	}
}

// serverOptions are those of every server that is recorded into.
var serverOptions = measure.ServerOptions{Durable: true, DateCommits: true}

// onBench does something with a recorder, built from the sources at hand, and a PostgreSQL.
func onBench(ctx context.Context, run *measure.Run, do func(*Bench) error) (err error) {
	dir, err := os.MkdirTemp(run.Dir, "kuberewind-ingest-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	program := filepath.Join(dir, "recorder")
	if out, err := build(ctx, program).CombinedOutput(); err != nil {
		return fmt.Errorf("build the recorder: %w\n%s", err, out)
	}
	return run.OnServer(ctx, serverOptions, func(server *measure.Server) error {
		return do(&Bench{Server: server, Recorder: program, Dir: dir})
	})
}

// build is the command that builds the recorder as make build does, and releases.
func build(ctx context.Context, program string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "github.com/kuberewind/kuberewind/cmd/recorder")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	return cmd
}

// Throughput measures deltas a second, and what one costs: CPU time, and bytes on disk and in the log. These are measures 1, 3
// and 4.
func Throughput(ctx context.Context, run *measure.Run, sizes Sizes) error {
	return onBench(ctx, run, func(b *Bench) error {
		for _, source := range sizes.sources(run.Report.Seed) {
			e, err := b.throughput(source)
			if err != nil {
				return err
			}
			if err := run.Do(ctx, e); err != nil {
				return err
			}
		}
		return nil
	})
}

func (s *Sizes) sources(seed uint64) (all []data.Source) {
	for _, settings := range s.Shapes {
		settings.Seed = seed
		all = append(all, data.Source{Settings: settings})
	}
	if s.Recording != "" {
		all = append(all, data.Source{Path: s.Recording})
	}
	return all
}

// held is how many events are held back for a number of living objects. With them a checkpoint can be weighed as a recorder
// makes it: from the previous one and nine tenths of an interval. After so few the recorder itself does not make one yet.
func held(live int) int { return int(checkpoint.Interval(int64(live)) * 9 / 10) }

// on gives the next runs a Set, and names it in a few words. If its last events are to be held back, a generated Set has those
// beside what its settings say.
func (b *Bench) on(source data.Source, hold func(live int) int) (name string, err error) {
	if name, err = source.Name(); err != nil {
		return "", err
	}
	set, err := source.Open()
	if err != nil {
		return "", err
	}
	live, events := set.Len()
	if hold != nil && source.Path != "" {
		if hold(live) >= events {
			return "", fmt.Errorf("%s has %d events, which are too few: with %d living objects, %d of them are held back to weigh a checkpoint", name, events, live, hold(live))
		}
		events -= hold(live)
	} else if hold != nil {
		source.Settings.Events += hold(live)
		if set, err = source.Open(); err != nil {
			return "", err
		}
	}
	b.source, b.set = source, set
	if b.events, b.span, err = whole(set, events); err != nil {
		return "", err
	}
	_, all := set.Len()
	b.held = all - b.events
	return fmt.Sprintf("%s, %s living objects, %s events", name, measure.Number(float64(live)), measure.Number(float64(b.events))), nil
}

// whole gives how many of a Set's first events can come without the others, at most so many, and how long they took in their
// cluster. Events with the same resource version are one write, and stay together.
func whole(set data.Set, most int) (events int, took time.Duration, err error) {
	var first, last data.Event
	n := 0
	for e, err := range set.Events() {
		switch {
		case err != nil:
			return 0, 0, err
		case n == 0:
			first = e
		case e.RV != last.RV:
			events, took = n, last.At.Sub(first.At)
		}
		if n == most {
			return events, took, nil
		}
		last = e
		n++
	}
	return n, last.At.Sub(first.At), nil
}

// The measured quantities of each run.
const (
	speed     = "deltas"
	cpuOwn    = "CPU of the program"
	cpuServer = "CPU of PostgreSQL"
	cpuUpkeep = "CPU of sweep and checkpoints"
	cpuAll    = "CPU, all"
	disk      = "disk, all"
	heap      = "heap"
	toast     = "TOAST"
	ofAdded   = "rows of Added"
	ofUpdated = "rows of Updated"
	ofDeleted = "rows of Deleted"
	index     = "indexes"
	sweeping  = "sweeps"
	pointing  = "checkpoints"
	swept     = "a sweep"
	logged    = "WAL, all"
	loggedRun = "WAL of the run"
	memory    = "peak memory"
	cpuData   = "CPU of the data's server"
)

// The units of what is of one delta.
const (
	microsEach = "µs a delta"
	bytesEach  = "bytes a delta"
)

var throughputQuantities = []measure.Quantity{
	{Name: speed, Unit: "deltas/s"}, {Name: cpuOwn, Unit: microsEach}, {Name: cpuServer, Unit: microsEach}, {Name: cpuUpkeep, Unit: microsEach}, {Name: cpuAll, Unit: microsEach},
	{Name: disk, Unit: bytesEach}, {Name: heap, Unit: bytesEach}, {Name: toast, Unit: bytesEach}, {Name: ofAdded, Unit: bytesEach}, {Name: ofUpdated, Unit: bytesEach}, {Name: ofDeleted, Unit: bytesEach},
	{Name: index, Unit: bytesEach}, {Name: sweeping, Unit: bytesEach}, {Name: pointing, Unit: bytesEach}, {Name: swept, Unit: "bytes an object"},
	{Name: logged, Unit: bytesEach}, {Name: loggedRun, Unit: bytesEach}, {Name: memory, Unit: "MiB"}, {Name: cpuData, Unit: microsEach},
}

// insertable is how many events the baseline with an INSERT each is given at most. It falls behind, and informers hold without bound what their handlers have yet to
// take: 300,000 events had 16 GB.
const insertable = 400_000

func (b *Bench) throughput(source data.Source) (measure.Experiment, error) {
	on, err := b.on(source, held)
	if err != nil {
		return measure.Experiment{}, err
	}
	ours, copied := recorder.String(), byCopy.String()
	e := measure.Experiment{
		Name: "ingest " + on, Title: "From the socket to committed rows", Data: on, Quantities: throughputQuantities,
		Compare: []measure.Comparison{
			{Number: "1", What: "deltas/s, to COPY of 500", Quantity: speed, Of: ours, To: copied, AtLeast: 3, Aim: 6},
			{Number: "3", What: "bytes on disk, with sweeps and checkpoints", Quantity: disk, Of: ours, To: copied, AtMost: 0.38, Aim: 0.25},
			{Number: "3", What: "bytes of WAL, with sweeps and checkpoints", Quantity: logged, Of: ours, To: copied, AtMost: 0.38, Aim: 0.25},
			{Number: "4", What: "CPU of the recorder", Quantity: cpuOwn, Of: ours, To: copied, AtMost: 0.35, Aim: 0.2},
			{Number: "4", What: "CPU of PostgreSQL", Quantity: cpuServer, Of: ours, To: copied, AtMost: 0.35, Aim: 0.2},
			{Number: "4", What: "CPU of both, with sweeps and checkpoints", Quantity: cpuAll, Of: ours, To: copied, AtMost: 0.35, Aim: 0.2},
		},
	}
	ways := []way{recorder, byCopy}
	if b.events <= insertable {
		ways = append(ways, byInsert)
		e.Compare = slices.Insert(e.Compare, 1, measure.Comparison{Number: "1", What: "deltas/s, to an INSERT each", Quantity: speed, Of: ours, To: byInsert.String()})
	}
	for _, w := range ways {
		e.Ways = append(e.Ways, measure.Way{Name: w.String(), Once: w == byInsert, Run: func(ctx context.Context, _ int) (measure.Values, error) {
			out, err := b.once(ctx, w, 0)
			if err != nil {
				return nil, err
			}
			return out.values(), nil
		}})
	}
	return e, nil
}

// day is how often the record is swept.
const day = 24 * time.Hour

// values are those of measures 1, 3 and 4.
func (o *Outcome) values() measure.Values {
	n := float64(o.Events)
	each := func(bytes int64) float64 { return float64(bytes) / n }
	cpu := func(d time.Duration) float64 { return float64(d.Microseconds()) / n }
	rows, other := o.After.Rows.minus(o.Before.Rows), o.After.Other.minus(o.Before.Other)
	// One checkpoint is made in each interval, and one sweep in each day of the data's own clock.
	point := func(cost int64) float64 { return float64(cost) / float64(checkpoint.Interval(int64(o.Live))) }
	sweeps := o.Span.Seconds() / day.Seconds()
	sweep := o.Upkeep.Sweep.Rows.total() + o.Upkeep.Sweep.Other.total()
	v := measure.Values{
		speed: n / o.Took.Seconds(), cpuOwn: cpu(o.Process), cpuServer: cpu(o.Postgres - o.Pointing), cpuData: cpu(o.Serving), memory: float64(o.Peak) / (1 << 20),
		heap: each(rows.Heap + other.Heap), toast: each(rows.Toast + other.Toast),
		ofAdded: each(o.Stored["ADDED"]), ofUpdated: each(o.Stored["MODIFIED"]), ofDeleted: each(o.Stored["DELETED"]), index: each(rows.Index + other.Index), loggedRun: each(o.After.WAL - o.Before.WAL),
		sweeping: sweeps * each(sweep), pointing: point(o.Upkeep.Checkpoint.Checkpoints.total()), swept: float64(sweep) / float64(max(o.Upkeep.Swept, 1)),
		cpuUpkeep: sweeps*cpu(o.Upkeep.SweepCPU) + point(o.Upkeep.CheckpointCPU.Microseconds()),
	}
	v[cpuAll] = v[cpuOwn] + v[cpuServer] + v[cpuUpkeep]
	v[disk] = v[heap] + v[toast] + v[index] + v[sweeping] + v[pointing]
	v[logged] = v[loggedRun] + sweeps*each(o.Upkeep.Sweep.WAL) + point(o.Upkeep.Checkpoint.WAL)
	return v
}

// The percentiles that are shown.
const (
	half = "p50"
	most = "p99"
)

// Latency measures how long it takes from an event on the wire to its committed row, at several rates: measure 6.
func Latency(ctx context.Context, run *measure.Run, sizes Sizes) error {
	return onBench(ctx, run, func(b *Bench) error {
		for _, rate := range sizes.Rates {
			lasts := sizes.lasts(rate)
			settings := data.Settings{Seed: run.Report.Seed, Live: sizes.RateLive, Events: int(rate * lasts.Seconds())}
			on, err := b.on(data.Source{Settings: settings}, nil)
			if err != nil {
				return err
			}
			if err := run.Do(ctx, b.latency(rate, on, lasts)); err != nil {
				return err
			}
		}
		return nil
	})
}

// boundAt is the rate at which the time is bound.
const boundAt = 1000

// lasts is how long events come at a rate.
func (s *Sizes) lasts(rate float64) time.Duration {
	if rate == boundAt {
		return cmp.Or(s.BoundFor, s.RateFor)
	}
	return s.RateFor
}

func (b *Bench) latency(rate float64, on string, lasts time.Duration) measure.Experiment {
	ours, bare := recorder.String(), watching.String()
	bound := measure.Comparison{Number: "6", What: "p99, beyond that of a bare watch", Quantity: most, Of: ours, To: bare, By: measure.Difference}
	if rate == boundAt {
		bound.AtMost, bound.Aim = 100, 25
	}
	e := measure.Experiment{
		Name: fmt.Sprintf("latency at %.0f", rate), Title: fmt.Sprintf("From the event on the wire to the committed row, at %s a second", measure.Number(rate)), Data: fmt.Sprintf("%s, within %s", on, lasts),
		Quantities: []measure.Quantity{{Name: half, Unit: "ms"}, {Name: most, Unit: "ms"}},
		Compare: []measure.Comparison{
			bound, {Number: "6", What: "p50, beyond that of a bare watch", Quantity: half, Of: ours, To: bare, By: measure.Difference},
		},
	}
	for _, w := range []way{recorder, watching, byCopy} {
		e.Ways = append(e.Ways, measure.Way{Name: w.String(), Once: w == byCopy, Run: func(ctx context.Context, _ int) (measure.Values, error) {
			out, err := b.once(ctx, w, rate)
			if err != nil {
				return nil, err
			}
			return measure.Values{half: millis(out.Latencies, 0.5), most: millis(out.Latencies, 0.99)}, nil
		}})
	}
	return e
}
