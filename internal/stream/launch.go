package stream

import (
	"context"
	"log/slog"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/schemacheck"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
)

// Launcher begins and ends the runs of streams, with what they share.
type Launcher struct {
	Client    *kube.Client
	Queue     *deltafifo.Queue
	Lists     *Gate
	Now       func() time.Time           // the clock of the record
	LookAgain func(schema.GroupResource) // at whether a resource is served, and as what
	Returned  func() <-chan struct{}     // is closed when the server answers again
	Log       *slog.Logger

	recoveries *rate.Limiter // of the requests of all recoveries
	looks      *rate.Limiter // of the requests of all looks at quiet streams
}

// NewLauncher gives the runs their common budgets.
func NewLauncher(l Launcher) *Launcher {
	l.recoveries = rate.NewLimiter(recoverRequestsSecond, recoverRequests)
	l.looks = rate.NewLimiter(lookRequestsSecond, lookRequests)
	return &l
}

// Launch follows the resource as was decided, in place of the run before. Of the zero Decision, it decides when that run has ended.
// No End of the stream is under way.
func (l *Launcher) Launch(ctx context.Context, s *Stream, resource kube.Resource, d lifecycle.Decision) {
	before := s.Current()
	if before != nil {
		before.Halt()
	}
	if d.Do == 0 {
		d = s.next(before)
	}
	run := &Run{served: resource, gone: make(chan struct{}), done: make(chan struct{})}
	run.fifo = l.Queue.FIFO(s.runOptions(resource))
	run.reflector = l.newReflector(s, run, resource, d)
	if d.Do == lifecycle.List {
		// The list stays due if the run ends before it is begun.
		run.listCause, run.listDetail = d.Cause, d.Detail
		run.listing.Store(true)
	}
	s.standing.ended, s.standing.due = "", lifecycle.Reason{}
	if before == nil {
		// Others ask the server about what it recalls, so it has to be served.
		s.recall()
	}
	s.etcd.Follow(run.reflector.Reverse)
	s.mu.Lock()
	s.run = run
	s.mu.Unlock()
	ctx, run.stop = context.WithCancelCause(ctx)
	go func() {
		defer close(run.done)
		defer s.etcd.Follow(nil)
		// It waits for room in the queue, and must not hold up who starts and stops the streams.
		if err := run.fifo.Bookmark(beginOf(d)); err == nil {
			run.reflector.RunWithContext(ctx)
		}
	}()
}

// Vacant tells whether nothing of a stream that has no run is alive.
func (l *Launcher) Vacant(s *Stream) bool {
	fifo := l.Queue.FIFO(s.FIFOOptions())
	defer fifo.Close()
	return fifo.Tail().Vacant()
}

// Compare lists a stream once more, beside its run. It has a FIFO of its own, as the sweep has: that of the run may be closed meanwhile.
func (l *Launcher) Compare(ctx context.Context, of schemacheck.Stream, resource kube.Resource, schema string) (different int, err error) {
	release, err := l.Lists.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	s := of.(*Stream)
	o := s.FIFOOptions()
	o.Transformer = canonical.Transformer(s.redaction)
	fifo := l.Queue.FIFO(o)
	defer fifo.Close()
	stop := context.AfterFunc(ctx, fifo.Close)
	defer stop()
	different, err = schemacheck.Pages(ctx, l.Client.ListWatch(resource, ""), fifo.Tail().Compare)
	if err != nil || schema == "" {
		return different, err
	}
	return different, fifo.Tail().Compared(schema)
}

// beginOf is the resource version at which the stream begins with nothing alive, empty if it does not.
func beginOf(d lifecycle.Decision) string {
	if d.Do == lifecycle.Begin {
		return d.At
	}
	return ""
}

// recoverRevisions is what a hundred writes a second make in a minute and a half, if no stream knows whose they are.
const recoverRevisions = 10_000

const (
	// recoverRequests bounds what all streams together ask of a server to recover. recoverRequestsSecond is how fast that
	// comes back. A server that has just started has other things to do. Beyond the bound there is a gap.
	recoverRequests       = 10_000
	recoverRequestsSecond = 20
	// lookRequests bounds in the same way what all looks at quiet streams ask. Beyond it, a look is made again in its turn. Looks must not
	// take what a recovery needs.
	lookRequests       = 2_000
	lookRequestsSecond = 40
)

func (l *Launcher) newReflector(s *Stream, run *Run, resource kube.Resource, d lifecycle.Decision) *reflector.Reflector {
	position := ""
	if d.Do == lifecycle.Resume {
		position = d.At
	}
	lw := l.Client.ListWatch(resource, "")
	s.etcd.ListWith(func(namespace string) cache.ListerWithContext { return l.Client.ListWatch(resource, namespace) })
	gr := resource.GroupResource()
	return reflector.NewReflectorWithOptions(lw, &kube.Object{}, newStore(s, run), reflector.Options{
		Name: resource.String(), TypeDescription: resource.String(),
		ResourceVersion: position, StartResourceVersion: beginOf(d), ListCause: d.Cause, Interrupted: s.standing.interrupted,
		BeforeList: func(context.Context) error { return run.fifo.Tail().AwaitMemory() }, // halt closes the FIFO
		ListGate:   l.Lists.acquire,
		Fresh:      func() cache.ListerWatcher { return fresh{lw} },
		Unmarked:   uncached(gr), UnmarkedTimeout: rollback.QuietMost,
		Returned:         l.Returned,
		RecoverRevisions: recoverRevisions, Afford: l.recoveries.Allow, AffordLook: l.looks.Allow, Revisions: s.etcd, History: s.etcd,
		Logger: l.Log.With(slog.String("group", gr.Group), slog.String("resource", gr.Resource)),
		Hooks:  l.hooks(s, run),
	})
}

// uncached are the resources for which API servers keep no watch cache by default, and so send no bookmarks
// (k8s.io/kubernetes/pkg/kubeapiserver, SpecialDefaultResourcePrefixes and DefaultWatchCacheSizes).
func uncached(gr schema.GroupResource) bool {
	return gr.Resource == "events" && (gr.Group == "" || gr.Group == "events.k8s.io")
}

// hooks keep the metrics of a run, and tell when the stream has settled.
func (l *Launcher) hooks(s *Stream, run *Run) reflector.Hooks {
	return reflector.Hooks{
		Relist: func(cause delta.Cause) {
			s.counters.relists(cause).Inc()
			if cause == delta.CauseHistoryReversed {
				l.LookAgain(run.served.GroupResource())
			}
		},
		Undecodable: func(items int) { s.counters.undecodable.Add(float64(items)) },
		WatchOpened: func(resourceVersion string) {
			s.counters.watches.Inc()
			s.dating.watched(l.Now())
			s.counters.up.Set(1)
			s.etcd.Watching(resourceVersion)
			if !run.listing.Load() {
				s.settled.settle()
			}
		},
		WatchClosed: func(err error) {
			if err == nil {
				s.excused("")
			}
			s.counters.up.Set(0)
			run.closed.Store(time.Now().UnixNano())
			s.etcd.Closed(err)
		},
		Recovered: s.counters.recovered,
		Position:  s.etcd.Reached,
	}
}
