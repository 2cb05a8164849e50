package notices

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/clusterevents"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

const (
	// noticeEvery is how long gaps are collected, so that one Event reports the gaps of a hundred streams.
	noticeEvery = 5 * time.Second
	// behindAfter is how long deltas may wait for the database before an Event reports it.
	behindAfter = time.Minute
	// namedStreams is how many streams a message names.
	namedStreams = 8
)

// Notices writes Events about the recorder into the cluster.
type Notices struct {
	*clusterevents.Publisher // nil if the recorder writes no Events

	mu   sync.Mutex // protects gaps
	gaps map[gapNotice]map[string]bool

	behind bool // the last Event said that the database is behind; belongs to Follow
}

// gapNotice is the opening or closing of gaps that one Event reports.
type gapNotice struct {
	cause   delta.Cause
	outcome delta.Outcome // empty while they are open
}

// New returns Notices that write by a publisher. If it is nil, they write nothing.
func New(p *clusterevents.Publisher) *Notices {
	return &Notices{Publisher: p, gaps: map[gapNotice]map[string]bool{}}
}

// Gap notes a gap that a commit opened or closed. It ignores first lists.
func (n *Notices) Gap(g *postgres.GapChange) {
	if n.Publisher == nil || g.Cause == delta.CauseFirstList {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	key := gapNotice{cause: g.Cause, outcome: g.Outcome}
	if n.gaps[key] == nil {
		n.gaps[key] = map[string]bool{}
	}
	n.gaps[key][schema.GroupResource{Group: g.Group, Resource: g.Resource}.String()] = true
}

// Follow writes Events about gaps, and about a database that is behind, until ctx ends.
func (n *Notices) Follow(ctx context.Context, waiting func() time.Duration) {
	if n.Publisher == nil {
		return
	}
	ticker := time.NewTicker(noticeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			n.reportGaps()
			n.reportBehind(waiting())
		}
	}
}

func (n *Notices) reportGaps() {
	n.mu.Lock()
	gaps := n.gaps
	n.gaps = map[gapNotice]map[string]bool{}
	n.mu.Unlock()
	for g, streams := range gaps {
		reason, message, complete := g.words()
		write := n.Warning
		if complete {
			write = n.Normal
		}
		write(reason, fmt.Sprintf("%s (%s): %s", message, g.cause, named(streams)))
	}
}

// words returns the reason and the message of the Event, and whether nothing was missed. The view coverage and the log
// call a gap with outcome equal incomplete, so the Event is a Warning too.
func (g gapNotice) words() (reason, message string, complete bool) {
	switch g.outcome {
	case "":
		return "GapOpened", "versions may be missed from now on", false
	case delta.OutcomeResumed:
		return "GapClosed", "the watch resumed where it stopped; nothing was missed", true
	case delta.OutcomeEqual:
		return "GapClosed", "versions may be missing: a list showed no change, but an object may have changed and changed back", false
	default:
		return "GapClosed", "versions may be missing: a list shows only the newest state", false
	}
}

// named lists up to namedStreams streams, and the number of the others.
func named(streams map[string]bool) string {
	names := slices.Sorted(maps.Keys(streams))
	if len(names) <= namedStreams {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namedStreams], ", "), len(names)-namedStreams)
}

// reportBehind writes an Event when the database falls behind, and one when it has caught up.
func (n *Notices) reportBehind(waiting time.Duration) {
	switch behind := waiting > behindAfter; {
	case behind && !n.behind:
		n.behind = true
		n.Warning("DatabaseBehind", fmt.Sprintf("deltas have been waiting for the database for %s", waiting.Round(time.Second)))
	case !behind && n.behind:
		n.behind = false
		n.Normal("DatabaseCaughtUp", fmt.Sprintf("deltas wait for the database for less than %s again", behindAfter))
	}
}
