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

// Launcher starts and ends the runs of streams, with the state that they share.
type Launcher struct {
	Client    *kube.Client
	Queue     *deltafifo.Queue
	Lists     *Gate
	Now       func() time.Time           // the clock of the record
	LookAgain func(schema.GroupResource) // checks whether a resource is served, and in which version
	Returned  func() <-chan struct{}     // returns a channel that is closed when the server answers again
	Log       *slog.Logger

	recoveries *rate.Limiter // for the requests of all recoveries
	looks      *rate.Limiter // for the requests of all looks at quiet streams
}

// NewLauncher returns a launcher whose runs share their budgets of requests.
func NewLauncher(l Launcher) *Launcher {
	l.recoveries = rate.NewLimiter(recoverRequestsSecond, recoverRequests)
	l.looks = rate.NewLimiter(lookRequestsSecond, lookRequests)
	return &l
}

// Launch follows the resource as d says, in place of the previous run. If d is the zero Decision, Launch decides after
// that run has ended. No End of the stream runs meanwhile.
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
		// Other streams check the recalled versions at the server, so the resource has to be served.
		s.recall()
	}
	s.counters.up(0)
	s.rollbackStream.Follow(run.reflector.ReportRollback)
	s.mu.Lock()
	s.run = run
	s.mu.Unlock()
	ctx, run.stop = context.WithCancelCause(ctx)
	go func() {
		defer close(run.done)
		defer s.rollbackStream.Follow(nil)
		// Bookmark waits for room in the queue, and must not block the caller that starts and stops the streams.
		if err := run.fifo.Bookmark(beginOf(d)); err == nil {
			run.reflector.RunWithContext(ctx)
		}
	}()
}

// Vacant reports whether no object of a stream without a run is alive.
func (l *Launcher) Vacant(s *Stream) bool {
	fifo := l.Queue.FIFO(s.FIFOOptions())
	defer fifo.Close()
	return fifo.Tail().Vacant()
}

// Compare lists a stream once more, next to its run. It uses a FIFO of its own, as the sweep does: the FIFO of the run
// may be closed meanwhile.
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

// beginOf returns the resource version at which the stream begins with nothing alive, empty if it does not.
func beginOf(d lifecycle.Decision) string {
	if d.Do == lifecycle.Begin {
		return d.At
	}
	return ""
}

// recoverRevisions bounds a recovery: a hundred writes a second make so many revisions in a minute and a half, if no
// stream knows which are its own.
const recoverRevisions = 10_000

const (
	// recoverRequests bounds the requests of all streams together to recover. The budget grows again by
	// recoverRequestsSecond. A server that has just started has other work to do. If the budget is used up, there is a
	// gap.
	recoverRequests       = 10_000
	recoverRequestsSecond = 20
	// lookRequests bounds in the same way the requests of all looks at quiet streams. If the budget is used up, a look
	// comes again in its turn. Looks must not use the budget of recoveries.
	lookRequests       = 2_000
	lookRequestsSecond = 40
)

func (l *Launcher) newReflector(s *Stream, run *Run, resource kube.Resource, d lifecycle.Decision) *reflector.Reflector {
	position := ""
	if d.Do == lifecycle.Resume {
		position = d.At
	}
	lw := l.Client.ListWatch(resource, "")
	s.rollbackStream.ListWith(func(namespace string) cache.ListerWithContext { return l.Client.ListWatch(resource, namespace) })
	gr := resource.GroupResource()
	return reflector.NewReflectorWithOptions(lw, &kube.Object{}, newStore(s, run), reflector.Options{
		Name: resource.String(), TypeDescription: resource.String(),
		ResourceVersion: position, StartResourceVersion: beginOf(d), ListCause: d.Cause, Interrupted: s.standing.interrupted,
		BeforeList:  func(context.Context) error { return run.fifo.Tail().AwaitMemory() }, // Halt closes the FIFO
		ListGate:    l.Lists.acquire,
		Fresh:       func() cache.ListerWatcher { return fresh{lw} },
		NoBookmarks: uncached(gr), LookInterval: rollback.QuietMost,
		Returned:         l.Returned,
		RecoverRevisions: recoverRevisions, AllowRecovery: l.recoveries.Allow, AllowLook: l.looks.Allow, Revisions: s.rollbackStream, History: s.rollbackStream,
		Logger: l.Log.With(slog.String("group", gr.Group), slog.String("resource", gr.Resource)),
		Hooks:  l.hooks(s, run),
	})
}

// uncached reports whether API servers keep no watch cache for a resource by default, and so send no bookmarks
// (k8s.io/kubernetes/pkg/kubeapiserver, SpecialDefaultResourcePrefixes and DefaultWatchCacheSizes).
func uncached(gr schema.GroupResource) bool {
	return gr.Resource == "events" && (gr.Group == "" || gr.Group == "events.k8s.io")
}

// hooks returns hooks that keep the metrics of a run, and notice when the stream has started.
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
			s.counters.up(1)
			s.rollbackStream.Watching(resourceVersion)
			if !run.listing.Load() {
				s.started.mark()
			}
		},
		WatchClosed: func(err error) {
			if err == nil {
				s.setExpiryCause("")
			}
			s.counters.up(0)
			run.closed.Store(time.Now().UnixNano())
			s.rollbackStream.Closed(err)
		},
		Recovered: s.counters.recovered,
		Position:  s.rollbackStream.Reached,
	}
}
