package recorder

import (
	"encoding/json"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/filter"
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
