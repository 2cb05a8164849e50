package chaos_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// report prints the table of a campaign.
func (c *campaign) report(t *testing.T) {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	line := func(format string, args ...any) { fmt.Fprintf(table, format+"\n", args...) }
	for _, f := range faults {
		if why := c.refused[f.kind]; why != "" {
			line("%s\tnot injected: %s", f.kind, why)
		} else if n := c.injected[f.kind]; n > 0 {
			line("%s\t%d", f.kind, n)
		}
	}
	l := c.ledger
	line("rounds\t%d in %s", c.rounds, time.Since(c.started).Round(time.Second))
	line("writes tried\t%d, of which %d failed", c.load.tried.Load(), c.load.failed.Load())
	line("revisions\t%d", l.writes)
	line("rows\t%d", l.rows)
	byCause := map[string]int{}
	missed := map[string]int{}
	for _, g := range append(c.verdict.gaps, c.verdict.open...) {
		what := g.cause + ", " + g.outcome
		byCause[what]++
		missed[what] += g.missed
	}
	for _, what := range slices.Sorted(maps.Keys(byCause)) {
		line("gaps: %s\t%d, with %d revisions in them", what, byCause[what], missed[what])
	}
	line("missing in no gap\t%d", len(c.verdict.missing))
	line("undone by a restore, and served to no recorder\t%d", l.unserved)
	line("twice\t%d", l.twice)
	needless, unaffordable := c.needless()
	line("needless gaps\t%d", len(needless))
	line("needless gaps after a restore, because the requests were used up\t%d", unaffordable)
	line("differing, or never in etcd\t%d", l.differing+len(l.strange)+len(c.verdict.mistaken)+len(c.verdict.passed))
	line("served wrongly by a stale cache, within gaps\t%d", len(l.mistaken)-len(c.verdict.mistaken))
	line("streams still catching up\t%d at most, %s after a round", c.behind, idleWait)
	line("restarts of the API server that the log asked for\t%d", c.restarts)
	for _, code := range slices.Sorted(maps.Keys(c.recorders.exits)) {
		line("ends of recorders with %d\t%d", code, c.recorders.exits[code])
	}
	if n := len(c.idle); n > 0 {
		first, last := c.idle[0], c.idle[n-1]
		line("memory of an idle recorder\t%.0f MiB at first, %.0f MiB at last", first.memory/(1<<20), last.memory/(1<<20))
		line("its goroutines\t%.0f, %.0f", first.goroutines, last.goroutines)
		line("its open files\t%.0f, %.0f", first.files, last.files)
	}
	line("at its peak\t%.0f MiB of memory, %.1f MiB in the queue, %.1f MiB in the spool", c.peak.memory/(1<<20), c.peak.queue/(1<<20), c.peak.spool/(1<<20))
	line("again\tmake soak SEED=%d FAULTS=%s ROUNDS=%d COMPACT=%s RATE=%d", *seed, *kinds, c.rounds, *compacted, *rate)
	_ = table.Flush() // to memory
	fmt.Printf("\n%s\n", text.String())
}
