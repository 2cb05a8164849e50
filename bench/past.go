package main

import (
	"context"

	"github.com/kuberewind/kuberewind/bench/api"
	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/checkpoint"
)

// past measures the API of the past. The first LIST out of longer records is measured at size full: they take long to make.
func past(ctx context.Context, run *measure.Run) error {
	if err := api.Measure(ctx, run, map[string]int{quick: 1000, middle: 20_000, full: 20_000, largest: 20_000}[run.Report.Size]); err != nil {
		return err
	}
	if run.Report.Size == quick || run.Report.Size == middle {
		return nil
	}
	return pastGrowth(ctx, run, 300_000, 3_000_000, 20_000, checkpoint.Interval)
}

// pastGrowth lists out of two records with checkpoints at the interval for so many live objects. The larger is the one that the
// run names, if it names one.
func pastGrowth(ctx context.Context, run *measure.Run, small, large int64, live int, interval func(live int64) int64) error {
	set, err := data.Generate(data.Settings{Seed: run.Report.Seed, Live: live})
	if err != nil {
		return err
	}
	first, _ := set.Len()
	b := &bench{Settings: Settings{Live: first, Interval: interval(int64(first))}, Run: run}
	instants := b.instants(run.Rounds)
	of := func(deltas int64, url string) api.Record {
		r := &record{deltas: deltas}
		return api.Record{Name: r.String(), URL: url, At: func(round int) int64 { return b.seqAt(r, b.Interval, instants(round)) }}
	}
	return run.OnServer(ctx, measure.ServerOptions{}, func(server *measure.Server) error {
		smaller, err := generatedRecord(ctx, run, server, small, live, interval)
		if err != nil {
			return err
		}
		larger := run.Record
		if larger == "" {
			if larger, err = generatedRecord(ctx, run, server, large, live, interval); err != nil {
				return err
			}
		}
		return api.Growth(ctx, run, of(small, smaller), of(large, larger))
	})
}
