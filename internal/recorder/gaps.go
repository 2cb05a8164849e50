package recorder

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/reflector"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// gapChanged says once that a gap was opened, and once how it ended (I3). That a resource was listed for the first time is no news.
func (r *Recorder) gapChanged(g postgres.GapChange) {
	r.notices.gap(&g)
	if g.Closed {
		r.metrics.Gaps.WithLabelValues(g.Group, g.Resource, g.Cause, g.Outcome).Inc()
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
	if g.Cause == reflector.CauseFirstList {
		log.Debug("listed for the first time")
		return
	}
	log.Warn("the gap is closed: versions may have been missed", "detail", g.Detail)
}

// Causes of gaps that the server knows nothing of: to it, a position is too old, whyever that is.
const (
	causeOverflow     = "overflow"      // queue and spool were full, and the watch was held back
	causeSpoolCorrupt = "spool_corrupt" // what was spooled could not be read
)

// overflowAfter is how long a stream must have been held back for that to be the cause: less is an ordinary wait.
const overflowAfter = time.Second

// because is the cause of a list, and what is known of it, where the recorder knows better than the server (I3).
func (s *store) because(cause, detail string) (string, string) {
	if proof := s.stream.claims.leftFor(); proof != "" && cause != reflector.CauseFirstList && cause != reflector.CauseHistoryReversed {
		return reflector.CauseHistoryReversed, strings.TrimSuffix(proof+"; "+detail, "; ")
	}
	if cause != reflector.CauseExpired {
		return cause, detail
	}
	if due := s.run.listDetail; due != "" {
		return cause, strings.TrimSuffix(due+"; "+detail, "; ")
	}
	if excuse := s.stream.excuseOf(); excuse != "" {
		return excuse, excuses[excuse] + "; " + detail
	}
	if held := s.HeldBack(); held >= overflowAfter {
		return causeOverflow, fmt.Sprintf("queue and spool were full, and the watch was held back for %s; %s", held.Round(time.Second), detail)
	}
	return cause, detail
}

// excuses say what the causes in stream.excuse mean.
var excuses = map[string]string{
	reflector.CauseConfiguration: "it was left out by the rules of the recorder before",
	causeSpoolCorrupt:            "what the recorder before had spooled could not all be read",
}

// excuse is why the record's position in a stream may be older than the server remembers, if that is more than a pause of the recorder.
func (r *Recorder) excuse(gr schema.GroupResource) string {
	switch {
	case r.filterBefore != nil && !r.filterBefore.Resource(gr):
		return reflector.CauseConfiguration
	case r.spoolCorrupt:
		return causeSpoolCorrupt
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
