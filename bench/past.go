package main

import (
	"context"

	"github.com/kuberewind/kuberewind/bench/api"
	"github.com/kuberewind/kuberewind/bench/measure"
)

// past measures the API of the past.
func past(ctx context.Context, run *measure.Run) error {
	return api.Measure(ctx, run, map[string]int{quick: 1000, middle: 20_000, full: 20_000, largest: 20_000}[run.Report.Size])
}
