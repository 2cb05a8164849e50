package recorder

import (
	"github.com/kuberewind/kuberewind/reflector"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// gapChanged says once that a gap was opened, and once how it ended (I3). That a resource was listed for the first time is no news.
func (r *Recorder) gapChanged(g postgres.GapChange) {
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
