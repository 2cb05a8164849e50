package parts

import (
	"context"
	"fmt"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// Queue measures the queue alone: producers add deltas, and one consumer takes them. It takes from this project's queue as the
// recorder does, and from client-go's two as an informer does. It runs BenchmarkThroughput of deltafifo.
func Queue(ctx context.Context, run *measure.Run, sizes Sizes) error {
	return withMicro(ctx, run, "deltafifo", func(m *micro) error {
		for _, producers := range []int{1, 8} {
			if err := run.Do(ctx, queue(m, sizes, producers)); err != nil {
				return err
			}
		}
		return nil
	})
}

func queue(m *micro, sizes Sizes, producers int) measure.Experiment {
	const speed, cpu, allocations, bytes = "throughput", "CPU", "allocations", "allocated"
	ways := []struct{ name, benchmark string }{
		{"kuberewind", "ours/Next"}, {"client-go RealFIFO", "RealFIFO/PopBatch"}, {"client-go DeltaFIFO", "DeltaFIFO/Pop"},
	}
	ours := ways[0].name
	e := measure.Experiment{
		Name: fmt.Sprintf("queue-%d", producers), Title: fmt.Sprintf("Queue: add and pop, producers: %d", producers),
		Data: fmt.Sprintf("%s deltas of 4,096 objects, decoded already; 8,192 wait at most", measure.Number(float64(sizes.Operations))),
		Quantities: []measure.Quantity{
			{Name: speed, Unit: "deltas/s"}, {Name: cpu, Unit: "ns a delta"}, {Name: allocations, Unit: "a delta"}, {Name: bytes, Unit: "bytes a delta"},
		},
	}
	for i, w := range ways {
		e.Ways = append(e.Ways, measure.Way{Name: w.name, Run: func(ctx context.Context, _ int) (measure.Values, error) {
			values, err := m.one(ctx, fmt.Sprintf("BenchmarkThroughput/producers=%d/%s", producers, w.benchmark), fmt.Sprintf("%dx", sizes.Operations))
			if err != nil {
				return nil, err
			}
			return measure.Values{speed: perSecond(values["ns/op"]), cpu: values["cpu-ns/op"], allocations: values["allocs/op"], bytes: values["B/op"]}, nil
		}})
		if i == 0 {
			continue
		}
		e.Compare = append(e.Compare,
			measure.Comparison{Number: "8", What: fmt.Sprintf("throughput, producers: %d, to %s", producers, w.name), Quantity: speed, Of: ours, To: w.name, AtLeast: 1, Aim: 2},
			measure.Comparison{Number: "8", What: fmt.Sprintf("CPU, producers: %d, to %s", producers, w.name), Quantity: cpu, Of: ours, To: w.name},
			measure.Comparison{Number: "8", What: fmt.Sprintf("allocated bytes, producers: %d, to %s", producers, w.name), Quantity: bytes, Of: ours, To: w.name})
	}
	return e
}
