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
	// noticeEvery is for how long gaps are gathered: what happened to a hundred streams at once is one Event.
	noticeEvery = 5 * time.Second
	// behindAfter is how long deltas wait for the database before that is told.
	behindAfter = time.Minute
	// namedStreams is how many streams a message names.
	namedStreams = 8
)

// Notices are what the recorder tells of itself in the cluster. An Event comes back as a delta; no delta is the cause of a notice.
type Notices struct {
	*clusterevents.Publisher // nil where nothing is told

	mu   sync.Mutex // protects gaps
	gaps map[gapNotice]map[string]bool

	behind bool // deltas have waited for long; belongs to Follow
}

// gapNotice is what has happened to gaps of some streams.
type gapNotice struct {
	cause   delta.Cause
	outcome delta.Outcome // empty while they are open
}

// New tells by a publisher. It may be nil: then nothing is told.
func New(p *clusterevents.Publisher) *Notices {
	return &Notices{Publisher: p, gaps: map[gapNotice]map[string]bool{}}
}

// Gap notes what a commit did to a gap. First lists are no news.
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

// Follow tells of gaps, and of a database that is behind, until ctx ends.
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
			n.tellGaps()
			n.tellBehind(waiting())
		}
	}
}

func (n *Notices) tellGaps() {
	n.mu.Lock()
	gaps := n.gaps
	n.gaps = map[gapNotice]map[string]bool{}
	n.mu.Unlock()
	for g, streams := range gaps {
		reason, message, harmless := g.words()
		tell := n.Warning
		if harmless {
			tell = n.Normal
		}
		tell(reason, fmt.Sprintf("%s (%s): %s", message, g.cause, named(streams)))
	}
}

// words are the reason and the message of an Event, and whether nobody has to look at it.
func (g gapNotice) words() (reason, message string, harmless bool) {
	switch g.outcome {
	case "":
		return "GapOpened", "versions may be missed from now on", false
	case delta.OutcomeResumed:
		return "GapClosed", "the watch went on where it was and nothing was missed", true
	case delta.OutcomeEqual:
		return "GapClosed", "a list showed nothing new; what came and went in between is missed", true
	default:
		return "GapClosed", "a list took the place of the versions that were missed", false
	}
}

// named are some of the streams, and how many more there are.
func named(streams map[string]bool) string {
	names := slices.Sorted(maps.Keys(streams))
	if len(names) <= namedStreams {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:namedStreams], ", "), len(names)-namedStreams)
}

// tellBehind tells when it begins and when it ends.
func (n *Notices) tellBehind(waiting time.Duration) {
	switch behind := waiting > behindAfter; {
	case behind && !n.behind:
		n.behind = true
		n.Warning("DatabaseBehind", fmt.Sprintf("deltas have been waiting for the database for %s", waiting.Round(time.Second)))
	case !behind && n.behind:
		n.behind = false
		n.Normal("DatabaseCaughtUp", "the database has taken what was waiting")
	}
}
