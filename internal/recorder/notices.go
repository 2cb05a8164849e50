package recorder

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/clusterevents"
	"github.com/kuberewind/kuberewind/kube"
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

// notices are what the recorder tells of itself in the cluster. An Event comes back as a delta; no delta is the cause of a notice.
type notices struct {
	*clusterevents.Publisher // nil where nothing is told

	mu   sync.Mutex // protects gaps
	gaps map[gapNotice]map[string]bool

	behind bool // deltas have waited for long; belongs to follow
}

// gapNotice is what has happened to gaps of some streams.
type gapNotice struct {
	cause   delta.Cause
	outcome delta.Outcome // empty while they are open
}

// openNotices finds out where and about what to tell.
func (r *Recorder) openNotices(ctx context.Context) error {
	namespace := r.eventNamespace()
	if namespace == "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	o := clusterevents.Options{Config: r.ownConfig(), Namespace: namespace, Host: host, Log: r.log}
	if r.found.InCluster() {
		o.Pod, o.PodUID = r.ownPod(ctx, namespace, host)
	}
	r.notices.Publisher, err = clusterevents.New(o)
	return err
}

// eventNamespace is where Events about the recorder go, empty for nowhere.
func (r *Recorder) eventNamespace() string {
	if r.cfg.EventNamespace == "" && r.found.InCluster() {
		return r.found.Namespace
	}
	return r.cfg.EventNamespace
}

// ownPod is the Pod that has the name of this host, as a Pod's containers have unless they use the host's network.
func (r *Recorder) ownPod(ctx context.Context, namespace, host string) (name string, uid types.UID) {
	pods := kube.Resource{Version: "v1", Name: "pods", Kind: "Pod", Namespaced: true}
	pod, err := r.client.ListWatch(pods, namespace).Get(ctx, namespace, host)
	if err != nil {
		return "", ""
	}
	return pod.Name, pod.UID
}

// gap notes what a commit did to one. First lists are no news.
func (n *notices) gap(g *postgres.GapChange) {
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

// follow tells of gaps, and of a database that is behind, until ctx ends.
func (n *notices) follow(ctx context.Context, waiting func() time.Duration) {
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

func (n *notices) tellGaps() {
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
func (n *notices) tellBehind(waiting time.Duration) {
	switch behind := waiting > behindAfter; {
	case behind && !n.behind:
		n.behind = true
		n.Warning("DatabaseBehind", fmt.Sprintf("deltas have been waiting for the database for %s", waiting.Round(time.Second)))
	case !behind && n.behind:
		n.behind = false
		n.Normal("DatabaseCaughtUp", "the database has taken what was waiting")
	}
}

// waiting is for how long the oldest delta has waited for the database.
func (r *Recorder) waiting() time.Duration {
	stats := r.queue.Stats()
	return max(stats.OldestAge, stats.SpoolAge)
}
