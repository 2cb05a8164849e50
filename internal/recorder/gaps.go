package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// gapChanged says once that a gap was opened, and once how it ended (I3). That a resource was listed for the first time is no news.
func (r *Recorder) gapChanged(g postgres.GapChange) {
	r.notices.Gap(&g)
	if g.Closed {
		r.metrics.Gaps.WithLabelValues(g.Group, g.Resource, string(g.Cause), string(g.Outcome)).Inc()
	}
	log := r.log.With("group", g.Group, "resource", g.Resource, "cause", g.Cause)
	if g.FromRV != "" {
		log = log.With("from", g.FromRV, "from_time", g.FromTime)
	}
	if !g.Closed {
		log.Warn("a gap is open: what happens to this resource cannot be seen", "detail", g.Detail)
		return
	}
	log = log.With("to", g.ToRV, "to_time", g.ToTime)
	if !g.Missed() {
		log.Info("the gap is closed: nothing was missed")
		return
	}
	log = log.With("appeared", g.Appeared, "changed", g.Changed, "vanished", g.Vanished)
	if g.Cause == delta.CauseFirstList {
		log.Debug("listed for the first time")
		return
	}
	log.Warn("the gap is closed: versions may have been missed", "detail", g.Detail)
}

// recordRollback queues the gaps of streams whose history is no more, as one entry (I3).
func (r *Recorder) recordRollback(ctx context.Context, proof string, gaps []rollback.Gap) error {
	of := map[*rollback.Stream]*stream{}
	for _, s := range r.snapshot() {
		of[s.etcd] = s
	}
	var late []deltafifo.Late
	for _, g := range gaps {
		if s := of[g.Of]; s != nil {
			late = append(late, deltafifo.Late{Stream: s, Until: g.Until})
		}
	}
	return r.queue.InterruptTogether(ctx, delta.CauseHistoryReversed, proof, late)
}

// overflowAfter is how long a stream must have been held back for that to be the cause: less is an ordinary wait.
const overflowAfter = time.Second

// because is the cause of a list, and its detail, where the recorder may know better than the server why there is a list (I3).
func (s *store) because(cause delta.Cause, detail string) (delta.Cause, string) {
	if cause == delta.CauseHistoryReversed {
		return cause, detail
	}
	known, why := s.known()
	if known == "" || cause.Given(known) != known {
		return cause, detail
	}
	return known, strings.TrimSuffix(why+"; "+detail, "; ")
}

// known is why the recorder expects a list, and what it knows of that. The cause is empty if it expects none.
func (s *store) known() (cause delta.Cause, why string) {
	if proof := s.stream.etcd.LeftFor(); proof != "" {
		return delta.CauseHistoryReversed, proof
	}
	if s.run.listing.Load() && s.run.listCause == delta.CauseHistoryReversed {
		return delta.CauseHistoryReversed, "its list was begun anew"
	}
	if due := s.run.listDetail; due != "" {
		return delta.CauseExpired, due
	}
	if excuse := s.stream.excuseOf(); excuse != "" {
		return excuse, excuses[excuse]
	}
	if held := s.HeldBack(); held >= overflowAfter {
		return delta.CauseOverflow, fmt.Sprintf("queue and spool were full, and the watch was held back for %s", held.Round(time.Second))
	}
	return "", ""
}

// excuses say what the causes in stream.excuse mean.
var excuses = map[delta.Cause]string{
	delta.CauseConfiguration: "it was left out by the rules of the recorder before",
	delta.CauseSpoolCorrupt:  "what the recorder before had spooled could not all be read",
}

// excuse is why the record's position in a stream may be older than the server remembers, if that is more than a pause of the recorder.
func (r *Recorder) excuse(gr schema.GroupResource) delta.Cause {
	switch {
	case r.filterBefore != nil && !r.filterBefore.Resource(gr):
		return delta.CauseConfiguration
	case r.spool.Corrupt():
		return delta.CauseSpoolCorrupt
	}
	return ""
}

// filterOf gives the rules of a recorder's configuration, nil where they are not known.
func filterOf(config []byte) *filter.Filter {
	var rules struct{ Include, Exclude []string }
	if err := json.Unmarshal(config, &rules); err != nil {
		return nil
	}
	before, err := filter.New(rules.Include, rules.Exclude)
	if err != nil {
		return nil
	}
	return before
}
