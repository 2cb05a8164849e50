package parts

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
)

const (
	heapHeld     = "heap"
	residentNow  = "resident"
	residentPeak = "resident at its peak"
)

// Memory measures the memory of a live object, as a part of the whole process after a garbage collection. It compares a
// recorder that has recorded the first lists with shared informers on the dynamic client that have listed the same.
func Memory(ctx context.Context, run *measure.Run, sizes Sizes) error {
	set, err := data.Generate(data.Settings{Seed: run.Report.Seed, Live: sizes.Held})
	if err != nil {
		return err
	}
	live, _ := set.Len()
	return run.OnServer(ctx, measure.ServerOptions{Durable: !sizes.NoSync}, func(database *measure.Server) error {
		return onServed(run, database, set, 0, func(s *served) error {
			const ours, theirs = "kuberewind", "SharedInformer, dynamic client"
			e := measure.Experiment{
				Name: "memory", Title: "Memory of a live object, whole process", Data: fmt.Sprintf("generated: %s live objects", measure.Number(float64(live))),
				Quantities: []measure.Quantity{
					{Name: heapHeld, Unit: "bytes an object"}, {Name: residentNow, Unit: "bytes an object"}, {Name: residentPeak, Unit: "bytes an object"},
				},
				Ways: []measure.Way{
					{Name: ours, Run: func(ctx context.Context, _ int) (measure.Values, error) { return s.memoryOfRecorder(ctx) }},
					{Name: theirs, Run: func(ctx context.Context, _ int) (measure.Values, error) { return s.memoryOfInformers(ctx) }},
				},
			}
			for _, quantity := range []string{heapHeld, residentNow} {
				e.Compare = append(e.Compare, measure.Comparison{Number: "5", What: quantity + ", to a SharedInformer", Quantity: quantity, Of: ours, To: theirs, AtMost: 0.15, Aim: 0.05})
			}
			return run.Do(ctx, e)
		})
	})
}

func (s *served) memoryOfRecorder(ctx context.Context) (values measure.Values, err error) {
	database, err := s.database.NewRecord(ctx)
	if err != nil {
		return nil, err
	}
	recorder, err := s.record(ctx, database)
	if err != nil {
		return nil, err
	}
	err = on(ctx, database, func(db *pgx.Conn) error {
		if err := s.listed(ctx, recorder, db); err != nil {
			return err
		}
		values, err = s.memory(recorder)
		return err
	})
	return values, errors.Join(err, recorder.end(), s.database.Drop(ctx, database))
}

func (s *served) memoryOfInformers(ctx context.Context) (values measure.Values, err error) {
	informers, err := s.informers(ctx)
	if err != nil {
		return nil, err
	}
	values, err = s.memory(informers)
	return values, errors.Join(err, informers.end())
}

// informers starts shared informers of all resources, and waits until they have listed.
func (s *served) informers(ctx context.Context) (*subject, error) {
	informers, err := begin(ctx, informerChild, job{Kubeconfig: s.kubeconfig, Dir: s.dir, Resources: s.set.Resources()})
	if err != nil {
		return nil, err
	}
	if err := informers.until(ctx, "all informers have listed", func() (bool, error) {
		u, err := informers.usage(false)
		return u.Synced, err
	}); err != nil {
		return nil, errors.Join(err, informers.end())
	}
	return informers, nil
}

// memory is what a child has for each object.
func (s *served) memory(of *subject) (measure.Values, error) {
	u, err := of.usage(true)
	if err != nil {
		return nil, err
	}
	m, err := measure.MemoryOf(of.pid)
	if err != nil {
		return nil, err
	}
	live, _ := s.set.Len()
	return measure.Values{
		heapHeld: float64(u.Heap) / float64(live), residentNow: float64(m.Now) / float64(live), residentPeak: float64(m.Peak) / float64(live),
	}, nil
}
