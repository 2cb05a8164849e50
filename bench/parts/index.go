package parts

import (
	"context"
	"fmt"

	"github.com/kuberewind/kuberewind/bench/measure"
)

// Index measures the indexer against client-go's of unstructured objects: making it of texts and what it holds then, and reading.
// It runs the benchmarks of indexer.
func Index(ctx context.Context, run *measure.Run, sizes Sizes) error {
	return withMicro(ctx, run, "indexer", func(m *micro) error {
		if err := run.Do(ctx, build(m, sizes)); err != nil {
			return err
		}
		for _, readers := range []int{1, 8} {
			if err := run.Do(ctx, read(m, sizes, readers)); err != nil {
				return err
			}
		}
		return nil
	})
}

// The two indexers, as tables and as the benchmarks call them.
var indexers = []struct{ name, benchmark string }{{"kuberewind", "ours"}, {"client-go", "client-go"}}

func pods(count int) (arg, data string) {
	return fmt.Sprintf("-pods=%d", count), measure.Number(float64(count)) + " Pods of 7 KB, five indices"
}

func build(m *micro, sizes Sizes) measure.Experiment {
	const speed, held = "objects", "memory held"
	arg, data := pods(sizes.Pods)
	e := measure.Experiment{
		Name: "indexer-build", Title: "Indexer: made of JSON texts", Data: data,
		Quantities: []measure.Quantity{{Name: speed, Unit: "a second"}, {Name: held, Unit: "bytes an object"}},
		Compare: []measure.Comparison{
			{Number: "9", What: "build, to client-go", Quantity: speed, Of: indexers[0].name, To: indexers[1].name},
			{Number: "9", What: "memory held, to client-go", Quantity: held, Of: indexers[0].name, To: indexers[1].name, AtMost: 0.2, Aim: 0.1},
		},
	}
	for _, x := range indexers {
		e.Ways = append(e.Ways, measure.Way{Name: x.name, Run: func(ctx context.Context, _ int) (measure.Values, error) {
			values, err := m.one(ctx, "BenchmarkBuild/"+x.benchmark, "1x", arg)
			if err != nil {
				return nil, err
			}
			return measure.Values{speed: perSecond(values["ns/object"]), held: values["held-B/object"]}, nil
		}})
	}
	return e
}

// The kinds of reads, and their names in the benchmark.
var reads = []struct{ name, benchmark string }{
	{"JSON of one", "json"}, {"one, to change", "object"}, {"one, as it is stored", "stored"}, {"keys by node", "index-keys"}, {"those of a node, to change", "objects"},
}

// longer is for how many times ReadFor those of a node are read, each of which takes a millisecond.
const longer = 5

func read(m *micro, sizes Sizes, readers int) measure.Experiment {
	arg, data := pods(sizes.Pods)
	name := fmt.Sprintf("indexer-read-%d", readers)
	e := measure.Experiment{Name: name, Title: fmt.Sprintf("Indexer: reading, readers: %d", readers), Data: data}
	for _, r := range reads {
		e.Quantities = append(e.Quantities, measure.Quantity{Name: r.name, Unit: "reads/s"})
		e.Compare = append(e.Compare, measure.Comparison{
			Number: "9", What: fmt.Sprintf("%s, readers: %d, to client-go", r.name, readers), Quantity: r.name, Of: indexers[0].name, To: indexers[1].name, AtLeast: 1,
		})
	}
	for _, x := range indexers {
		e.Ways = append(e.Ways, measure.Way{Name: x.name, Run: func(ctx context.Context, _ int) (measure.Values, error) {
			benchmark := "BenchmarkRead/%s/" + fmt.Sprintf("%s/readers=%d", x.benchmark, readers)
			all, err := m.run(ctx, fmt.Sprintf(benchmark, ".*"), sizes.ReadFor.String(), arg, fmt.Sprintf("-long=%s", longer*sizes.ReadFor))
			if err != nil {
				return nil, err
			}
			values := make(measure.Values)
			for _, r := range reads {
				found := all[fmt.Sprintf(benchmark, r.benchmark)]
				if found == nil {
					return nil, fmt.Errorf("the benchmarks of indexer do not read %s", r.benchmark)
				}
				values[r.name] = perSecond(found["ns/op"])
			}
			return values, nil
		}})
	}
	return e
}
