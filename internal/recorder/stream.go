package recorder

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// stream is one resource in the record. It lasts as long as the process. The resource may be served in another version, vanish
// and come back: each time with another run.
type stream struct {
	name       string
	resource   kube.Resource // by which the spool names it
	record     *postgres.Stream
	redaction  *redact.Resource // nil where nothing is hidden
	rules      filter.Resource
	exclusions exclusions
	counters   streamCounters
	etcd       *rollback.Stream
	// occurrence is the encoder's.
	occurrence occurrence
	// since is when this recorder took over: what was observed before it comes from a spool, and spooledOccurrence is its.
	since             time.Time
	spooledOccurrence occurrence
	// left is what a recorder before this one left of the stream in the spool; nil where there is nothing.
	left *spooling.Leftover
	// listedUnder are the rules of the last list that came to its end, whether it is on record, in the spool or queued. It
	// belongs to the run.
	listedUnder string
	// lives holds decisions by UID: all if rules look at labels, otherwise those that the rules would not take now. It is nil
	// before the first run, and belongs to the run. What one run has decided may wait in the queue when the next begins.
	lives map[types.UID]bool
	// undecided are those that were left out under other rules. That is taken back on record when a list has decided anew: the rules may be changed back before.
	undecided map[types.UID]struct{}
	// interrupted is why the stream cannot be followed, as it was last said; empty if it can. It belongs to the run: each
	// starts when the one before has ended.
	interrupted delta.Cause
	// ended is a resource version at which no object was left, as the definition of the resource was deleted. It is empty while there is a run.
	ended string
	// due is why a list is due. It ends the previous list, which may be recorded in part, or is the first under another
	// definition.
	due lifecycle.Reason
	// ending is under way, or was. It belongs to the handler. What it works on belongs to it until it has stopped.
	ending *ending
	// opened is when the first watch was, by the clock of the record, in nanoseconds since 1970; 0 before that.
	opened atomic.Int64
	// settled is closed when the stream follows the server for the first time, or has said why it cannot.
	settled chan struct{}
	settle  func()

	waits waiting // for the record of definitions; the handler's

	mu  sync.Mutex // protects what follows
	run *streamRun
	// excuse is why the position may be older than the server remembers. It is empty once the stream has gone on from there.
	excuse delta.Cause
}

// Name implements schemacheck.Stream and spooling.Stream.
func (s *stream) Name() string { return s.name }

// Resource implements spooling.Stream.
func (s *stream) Resource() kube.Resource { return s.resource }

// Redaction implements spooling.Stream.
func (s *stream) Redaction() *redact.Resource { return s.redaction }

// Record implements spooling.Stream.
func (s *stream) Record() *postgres.Stream { return s.record }

func (s *stream) current() *streamRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// excused notes why the position may be older than the server remembers, "" for no reason.
func (s *stream) excused(why delta.Cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.excuse = why
}

func (s *stream) excuseOf() delta.Cause {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.excuse
}

func (s *stream) halt() {
	if run := s.current(); run != nil {
		run.halt()
	}
}

// newStream registers the resource in the record and loads what the record holds of it.
// Since is a resource version before which the resource had no objects, or empty.
func (r *Recorder) newStream(ctx context.Context, resource kube.Resource, since string) (*stream, error) {
	rules, redaction := r.filter.For(resource.GroupResource()), r.redactor.For(resource.GroupResource())
	record, err := r.register(ctx, resource, rules, since)
	if err != nil {
		return nil, err
	}
	s := &stream{
		name: resource.String(), resource: resource, record: record, rules: rules, redaction: redaction,
		counters: r.metrics.stream(resource.GroupResource()), settled: make(chan struct{}),
		etcd: r.etcds.Add(rollback.Spec{Name: resource.String(), Record: record.ID(), Namespaced: resource.Namespaced, Canonical: canonical.Transformer(redaction)}),
	}
	s.etcd.Recall(rollback.Recalled{Reversals: r.untold[record.ID()], Unverified: r.unproven[record.ID()]})
	s.listedUnder = record.Filter()
	s.settle = sync.OnceFunc(func() { close(s.settled) })
	s.since = r.sink.Info().Started
	s.excused(r.excuse(resource.GroupResource()))
	if info := r.sink.Info(); info.Resumed && record.Position() != "" {
		s.occurrence.resume(info.Observed, info.Started)
	}
	return s, nil
}

// takeNewest gives the newest revisions on record of a stream, once.
func (r *Recorder) takeNewest(stream int32) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	newest := r.newest[stream]
	delete(r.newest, stream)
	return newest
}

// streamOf gives the stream of a resource, and opens it if it is not open. A resource has one stream as long as the process
// lives, because what is spooled of it comes back under the resource's name.
func (r *Recorder) streamOf(ctx context.Context, resource kube.Resource, since string) (s *stream, opened bool, err error) {
	if s = r.openStream(resource); s != nil {
		return s, false, nil
	}
	r.opening.Lock()
	defer r.opening.Unlock()
	if s = r.openStream(resource); s != nil {
		return s, false, nil
	}
	if s, err = r.newStream(ctx, resource, since); err != nil {
		return nil, false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams[resource.GroupResource()] = s
	return s, true, nil
}

// openStream gives the stream of a resource, nil if it is not open.
func (r *Recorder) openStream(resource kube.Resource) *stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.streams[resource.GroupResource()]
}

// openDormant opens the stream of a resource that is on record, and that nothing is followed for.
func (r *Recorder) openDormant(ctx context.Context, resource kube.Resource) error {
	_, _, err := r.streamOf(ctx, resource, "")
	return err
}

// register says to the record which version of the resource is followed now.
func (r *Recorder) register(ctx context.Context, resource kube.Resource, rules filter.Resource, since string) (*postgres.Stream, error) {
	return r.sink.Stream(ctx, postgres.StreamSpec{
		Group: resource.Group, Resource: resource.Name, Version: resource.Version, Kind: resource.Kind,
		Namespaced: resource.Namespaced, Filter: rules.String(), Schema: r.schemas.Of(resource), StartRV: since,
		Redact: canonical.Restorer(r.redactor.For(resource.GroupResource())),
	})
}

// launch follows the resource as was decided, in place of the run before. Of the zero Decision, it decides when that run has ended.
func (r *Recorder) launch(ctx context.Context, s *stream, resource kube.Resource, d lifecycle.Decision) {
	s.ending.stop()
	before := s.current()
	if before != nil {
		before.halt()
	}
	if d.Do == 0 {
		d = s.next(before)
	}
	run := &streamRun{served: resource, gone: make(chan struct{}), done: make(chan struct{})}
	run.fifo = r.queue.FIFO(deltafifo.FIFOOptions{
		Stream: s, Name: resource.String(), KnownObjects: s.record.Known(),
		Rules:       s.rules.String(),
		Attach:      s.exclusions.attach,
		Detach:      s.exclusions.detach,
		Transformer: canonical.Transformer(s.redaction),
	})
	run.reflector = r.newReflector(s, run, resource, d)
	if d.Do == lifecycle.List {
		// The list stays due if the run ends before it is begun.
		run.listCause, run.listDetail = d.Cause, d.Detail
		run.listing.Store(true)
	}
	s.ended, s.due = "", lifecycle.Reason{}
	if before == nil {
		// Others ask the server about what it recalls, so it has to be served.
		s.recall(r.takeNewest(s.record.ID()))
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

// recall takes over what a recorder before this one was served of the stream.
func (s *stream) recall(newest []string) {
	was := rollback.Recalled{Position: s.record.Position(), Known: s.record.Known(), Newest: newest}
	if s.left != nil && s.left.Anew {
		was = rollback.Recalled{Position: s.left.Position.Complete, Anew: true}
	}
	if s.left != nil {
		was.Unverified, was.Spooled = s.left.Unproven, s.left.Position.Complete
	}
	was.Left = s.reversed(nil)
	s.etcd.Recall(was)
}

// beginOf is the resource version at which the stream begins with nothing alive, empty if it does not.
func beginOf(d lifecycle.Decision) string {
	if d.Do == lifecycle.Begin {
		return d.At
	}
	return ""
}

// reversed says that the stream has left a history that is no more, and was not listed since.
func (s *stream) reversed(before *streamRun) bool {
	return s.etcd.HasLeft() || s.interrupted == delta.CauseHistoryReversed ||
		before == nil && s.record.OpenGap() == delta.CauseHistoryReversed && (s.left == nil || !s.left.Anew)
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

func (r *Recorder) newReflector(s *stream, run *streamRun, resource kube.Resource, d lifecycle.Decision) *reflector.Reflector {
	position := ""
	if d.Do == lifecycle.Resume {
		position = d.At
	}
	lw := r.client.ListWatch(resource, "")
	s.etcd.ListWith(func(namespace string) cache.ListerWithContext { return r.client.ListWatch(resource, namespace) })
	gr := resource.GroupResource()
	return reflector.NewReflectorWithOptions(lw, &kube.Object{}, newStore(s, run), reflector.Options{
		Name: resource.String(), TypeDescription: resource.String(),
		ResourceVersion: position, StartResourceVersion: beginOf(d), ListCause: d.Cause, Interrupted: s.interrupted,
		BeforeList: func(context.Context) error { return run.fifo.Tail().AwaitMemory() }, // halt closes the FIFO
		ListGate:   r.gate.acquire,
		Fresh:      func() cache.ListerWatcher { return fresh{lw} },
		Unmarked:   uncached(gr), UnmarkedTimeout: rollback.QuietMost,
		Returned:         r.etcds.Returned,
		RecoverRevisions: recoverRevisions, Afford: r.recoveries.Allow, AffordLook: r.looks.Allow, Revisions: s.etcd, History: s.etcd,
		Logger: r.log.With(slog.String("group", gr.Group), slog.String("resource", gr.Resource)),
		Hooks:  r.hooks(s, run),
	})
}

// uncached are the resources for which API servers keep no watch cache by default, and so send no bookmarks
// (k8s.io/kubernetes/pkg/kubeapiserver, SpecialDefaultResourcePrefixes and DefaultWatchCacheSizes).
func uncached(gr schema.GroupResource) bool {
	return gr.Resource == "events" && (gr.Group == "" || gr.Group == "events.k8s.io")
}

// hooks keep the metrics of a run, and tell when the stream has settled.
func (r *Recorder) hooks(s *stream, run *streamRun) reflector.Hooks {
	return reflector.Hooks{
		Relist: func(cause delta.Cause) {
			s.counters.relists(cause).Inc()
			if cause == delta.CauseHistoryReversed {
				r.follower.LookAgain(run.served.GroupResource())
			}
		},
		Undecodable: func(items int) { s.counters.undecodable.Add(float64(items)) },
		WatchOpened: func(resourceVersion string) {
			s.counters.watches.Inc()
			s.opened.CompareAndSwap(0, r.now().UnixNano())
			s.counters.up.Set(1)
			s.etcd.Watching(resourceVersion)
			if !run.listing.Load() {
				s.settle()
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

// watchedSince is when the first watch of this process was opened. What was missed is served soon after that, or before it by
// a list.
func (s *stream) watchedSince(now time.Time) time.Time {
	if opened := s.opened.Load(); opened != 0 {
		return time.Unix(0, opened)
	}
	return now
}
