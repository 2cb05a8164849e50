package parts

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
)

const (
	recorderCPU = "CPU of the recorder"
	bothCPU     = "CPU, with PostgreSQL"
)

// Growth measures how the cost of recording grows, each time on one axis and with all else the same. It measures the memory of
// the recorder. It measures the CPU time of the recorder and of PostgreSQL, from an empty record over the first lists to the
// last event. It also measures what PostgreSQL takes as more clusters write into one server.
func Growth(ctx context.Context, run *measure.Run, sizes Sizes) error {
	return growth(ctx, run, sizes, axes(run.Report.Seed, sizes))
}

func growth(ctx context.Context, run *measure.Run, sizes Sizes, axes []axis) error {
	return run.OnServer(ctx, measure.ServerOptions{Durable: !sizes.NoSync}, func(database *measure.Server) error {
		for _, axis := range axes {
			if err := run.Do(ctx, axis.experiment(run, database)); err != nil {
				return err
			}
		}
		return sharedBy(ctx, run, database, sizes)
	})
}

// An axis is something that grows.
type axis struct {
	name, what, data string
	sizes            []int // of it
	set              func(size int) (data.Set, error)
}

func axes(seed uint64, sizes Sizes) []axis {
	n := sizes.Grown
	generate := func(live, events int) (data.Set, error) {
		return data.Generate(data.Settings{Seed: seed, Live: live, Events: events})
	}
	// The least that makes a generated cluster, and enough for its cost to be more than that of starting.
	least := max(n, 100)
	times := func(of int) (all []int) {
		for _, step := range sizes.Steps {
			all = append(all, of*step)
		}
		return all
	}
	// As many as those, in equal ratios from 1 KiB to the largest.
	var bytes []int
	for i := range sizes.Steps {
		bytes = append(bytes, int(math.Round(1024*math.Pow(float64(sizes.Largest)/1024, float64(i)/float64(len(sizes.Steps)-1)))))
	}
	spelled := func(n int) string { return measure.Number(float64(n)) }
	return []axis{
		{
			name: "deltas", what: "deltas", sizes: times(10 * n), data: fmt.Sprintf("generated: %s live objects", spelled(least)),
			set: func(size int) (data.Set, error) { return generate(least, size) },
		},
		{
			name: "live", what: "live objects", sizes: times(sizes.GrownLive), data: "generated: the first lists, and no events",
			// The cost of deltas would come on top of each size, and hide the growth.
			set: func(size int) (data.Set, error) { return generate(size, 0) },
		},
		{
			name: "streams", what: "streams", sizes: times(sizes.Streams),
			data: "custom resources of 20 objects of 1 KiB each, and as many updates: with the streams grow the objects and the deltas",
			set: func(size int) (data.Set, error) {
				return uniform{resources: size, objects: 20 * size, bytes: 1 << 10, events: 20 * size}, nil
			},
		},
		{
			name: "bytes", what: "bytes of an object", sizes: bytes,
			data: fmt.Sprintf("a custom resource of 10 objects, %s updates of one value", spelled(max(n/10, 20))),
			set: func(size int) (data.Set, error) {
				return uniform{resources: 1, objects: 10, bytes: size, events: max(n/10, 20)}, nil
			},
		},
	}
}

func (a axis) experiment(run *measure.Run, database *measure.Server) measure.Experiment {
	e := measure.Experiment{
		Name: "growth-" + a.name, Title: "Cost of recording, over " + a.what, Data: a.data,
		Quantities: []measure.Quantity{{Name: bothCPU, Unit: "s"}, {Name: recorderCPU, Unit: "s"}, {Name: heapHeld, Unit: "bytes"}, {Name: residentPeak, Unit: "bytes"}},
	}
	for _, size := range a.sizes {
		e.Ways = append(e.Ways, measure.Way{
			Name: measure.Number(float64(size)), Factor: float64(size) / float64(a.sizes[0]),
			Run: func(ctx context.Context, _ int) (values measure.Values, err error) {
				set, err := a.set(size)
				if err != nil {
					return nil, err
				}
				err = onServed(run, database, set, 0, func(s *served) error {
					values, err = s.cost(ctx)
					return err
				})
				return values, err
			},
		})
	}
	for _, quantity := range []string{bothCPU, heapHeld, residentPeak} {
		e.Grow = append(e.Grow, measure.Growth{Number: "11", What: quantity + " over " + a.what, Quantity: quantity})
	}
	return e
}

// cost records everything into an empty record.
func (s *served) cost(ctx context.Context) (values measure.Values, err error) {
	database, err := s.database.NewRecord(ctx)
	if err != nil {
		return nil, err
	}
	before, err := measure.CPUOfTree(s.database.PID)
	if err != nil {
		return nil, err
	}
	recorder, err := s.record(ctx, database)
	if err != nil {
		return nil, err
	}
	err = on(ctx, database, func(db *pgx.Conn) error {
		live, events := s.set.Len()
		if err := s.listed(ctx, recorder, db); err != nil {
			return err
		}
		if err := s.watched(ctx, recorder); err != nil {
			return err
		}
		s.Go()
		if err := s.recorded(ctx, recorder, db, live+events); err != nil {
			return err
		}
		values, err = s.costOf(recorder, before)
		return err
	})
	return values, errors.Join(err, recorder.end(), s.database.Drop(ctx, database))
}

func (s *served) costOf(recorder *subject, before time.Duration) (measure.Values, error) {
	own, err := measure.CPUOfTree(recorder.pid)
	if err != nil {
		return nil, err
	}
	after, err := measure.CPUOfTree(s.database.PID)
	if err != nil {
		return nil, err
	}
	memory, err := measure.MemoryOf(recorder.pid)
	if err != nil {
		return nil, err
	}
	u, err := recorder.usage(true)
	return measure.Values{
		bothCPU: (own + after - before).Seconds(), recorderCPU: own.Seconds(), heapHeld: float64(u.Heap), residentPeak: float64(memory.Peak),
	}, err
}
