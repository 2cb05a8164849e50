package ingest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/data"
)

// A latency is how long an event took, and when it was written, in nanoseconds since 1970.
type latency struct {
	written int64
	took    time.Duration
}

func byLength(a, b latency) int { return cmp.Compare(a.took, b.took) }

// percentile of times, the shortest first; 0 of none.
func percentile(sorted []latency, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(p*float64(len(sorted))), len(sorted)-1)].took
}

// millis is a percentile in milliseconds.
func millis(sorted []latency, p float64) float64 {
	return float64(percentile(sorted, p).Microseconds()) / 1000
}

// A version identifies an event, both as served and as recorded. Several deletions may share one.
type version struct {
	resource int
	rv       uint64
}

// times compares when events were written with when they were committed.
func (r *run) times(ctx context.Context, db *pgx.Conn) error {
	written, err := r.served.Times(ctx)
	if err != nil {
		return err
	}
	commits, err := commitsAfter(ctx, db, r.way == recorder, r.listed)
	if err != nil {
		return err
	}
	if len(commits) != len(written) {
		return fmt.Errorf("%d events were written, and %d rows are there: one of the two is wrong", len(written), len(commits))
	}
	wire := make(map[version]int64, len(written))
	first := int64(0)
	for _, e := range written {
		wire[version{e.Resource, e.RV}] = e.At
		if first == 0 || e.At < first {
			first = e.At
		}
	}
	resources := r.bench.set.Resources()
	last := time.Time{}
	for _, c := range commits {
		i := slices.IndexFunc(resources, func(of data.Resource) bool { return of.Group == c.group && of.Resource == c.resource })
		at, found := wire[version{i, c.rv}]
		if !found {
			return fmt.Errorf("resource version %d of %s is on record, and was never written", c.rv, c.resource)
		}
		r.out.Latencies = append(r.out.Latencies, latency{at, c.at.Sub(time.Unix(0, at))})
		if c.at.After(last) {
			last = c.at
		}
	}
	slices.SortFunc(r.out.Latencies, byLength)
	r.out.Took = last.Sub(time.Unix(0, first))
	return nil
}
