package reflector

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// Reflector keeps a store fed with the changes of one resource.
type Reflector struct {
	// ShouldResync decides, each ResyncPeriod, whether the reflector calls the store's Resync; nil means yes. Set it
	// before Run.
	ShouldResync func() bool
	// WatchListPageSize is the number of objects in one page of a list, Options.PageSize unless changed. Set it before
	// Run.
	WatchListPageSize int64

	options *Options
	log     *slog.Logger

	source    *source    // the server
	retries   *retries   // the pauses after failures
	place     *place     // the place of the stream
	health    *health    // whether it can go on
	quiet     *quiet     // how old its position is
	delivery  *delivery  // events to the store
	timeline  *timeline  // whether the history is still the same
	lists     *lister    // lists to the store
	recoverer *recoverer // history that no watch can give
	resyncs   resyncs
}

// NewReflector returns a reflector with default options that starts with a
// list. See NewReflectorWithOptions.
func NewReflector(
	lw cache.ListerWatcher, expectedType any, store cache.ReflectorStore, resyncPeriod time.Duration,
) *Reflector {
	return NewReflectorWithOptions(lw, expectedType, store, Options{ResyncPeriod: resyncPeriod})
}

// NewReflectorWithOptions returns a reflector that lists and watches with lw and feeds the store. Each object must have
// the type of expectedType, and its apiVersion and kind if that is an *unstructured.Unstructured that has them. Nil
// accepts any type. In addition to cache.ReflectorStore, the store may implement PagedStore, InterruptStore,
// UnreadableStore, ProofStore, cache.ReflectorBookmarkStore and cache.ResourceVersionUpdater. As in client-go's queues, the store applies its own
// transformer (cache.TransformingStore).
func NewReflectorWithOptions(
	lw cache.ListerWatcher, expectedType any, store cache.ReflectorStore, options Options,
) *Reflector {
	expected := expect(expectedType)
	orElse(&options.TypeDescription, expected.String())
	options = withDefaults(options)
	return assemble(lw, expected, newOutlet(store), &options)
}

// assemble makes the parts of a reflector. Each knows only parts that are made before it.
func assemble(lw cache.ListerWatcher, expected expectation, out outlet, options *Options) *Reflector {
	r := &Reflector{
		WatchListPageSize: options.PageSize,
		options:           options,
		log:               options.Logger.With("reflector", options.Name),
		retries:           newRetries(options),
		place:             newPlace(options),
		quiet:             newQuiet(options),
		resyncs:           resyncs{period: options.ResyncPeriod, clock: options.Clock},
	}
	r.source = newSource(lw, options, r.log)
	r.health = &health{
		out: out, place: r.place, clock: options.Clock, undecodable: options.Hooks.Undecodable,
		interrupted: options.Interrupted,
	}
	r.delivery = &delivery{expected: expected, out: out, place: r.place, quiet: r.quiet, health: r.health}
	r.timeline = newTimeline(options, r.place, r.health, r.log)
	r.lists = &lister{
		source: r.source, out: out, place: r.place, timeline: r.timeline, health: r.health, options: options, log: r.log,
	}
	r.recoverer = &recoverer{
		source: r.source, delivery: r.delivery, place: r.place, quiet: r.quiet, retries: r.retries, timeline: r.timeline,
		options: options, log: r.log,
	}
	return r
}

// Name returns Options.Name.
func (r *Reflector) Name() string { return r.options.Name }

// TypeDescription describes the reflected type in words, for display only.
func (r *Reflector) TypeDescription() string { return r.options.TypeDescription }

// LastSyncResourceVersion returns the newest resource version that the store has accepted, or the one to start from.
// Before the first list it returns "".
func (r *Reflector) LastSyncResourceVersion() string {
	return r.place.newest()
}

// Run is RunWithContext for a stop channel.
func (r *Reflector) Run(stop <-chan struct{}) {
	r.RunWithContext(wait.ContextForChannel(stop))
}

// RunWithContext lists and watches until the context ends, with a pause after
// each failure. It must not run twice at a time.
func (r *Reflector) RunWithContext(ctx context.Context) {
	for ctx.Err() == nil {
		returned := r.options.Returned() // Read it before the attempt, so that no return of the server is missed.
		err := r.ListAndWatchWithContext(ctx)
		if err == nil {
			continue
		}
		delay := r.retries.delayAfter(err, r.timeline.rollbackProof != "")
		r.log.WarnContext(ctx, "list and watch ended, will retry",
			"error", err, "resource_version", r.place.at.Newest, "retry_in", delay)
		r.retries.pauseUntil(ctx, delay, returned)
	}
}

// ListAndWatch is ListAndWatchWithContext for a stop channel.
func (r *Reflector) ListAndWatch(stop <-chan struct{}) error {
	return r.ListAndWatchWithContext(wait.ContextForChannel(stop))
}

// ListAndWatchWithContext goes on from the store's position, and lists only if it must. It returns nil when the context
// has ended. It returns an error when something has failed after which a pause is due; the next call goes on.
func (r *Reflector) ListAndWatchWithContext(ctx context.Context) error {
	r.source.pages.most = r.WatchListPageSize
	err := r.follow(ctx)
	if ctx.Err() != nil && kindOf(err) != storeFailure {
		return nil
	}
	due, err := r.health.failed(err)
	if due != nil {
		r.lists.pending = due
	}
	return err
}

// follow lists when it has to, then watches, and repeats this until something fails. If a rollback ends a list, the check that comes next
// makes another list due.
func (r *Reflector) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := r.timeline.check(ctx); err != nil {
			return err
		}
		var ahead *openWatch
		if r.lists.due() {
			var err error
			ahead, err = r.lists.list(ctx)
			if errors.Is(err, errRolledBack) {
				continue
			}
			if err != nil {
				return err
			}
			r.source.works()
			r.recoverer.works()
		}
		if err := r.afterWatch(ctx, r.watch(ctx, ahead)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// ResumeResourceVersion returns the version from which another reflector of the same store goes on without missing
// anything, "" if it has to list. The caller may use it before Run and after Run has returned.
func (r *Reflector) ResumeResourceVersion() string { return r.place.at.Complete }

// ReportRollback says that the server's history went backwards. The watch ends, the store learns it, and a list follows once
// History accepts one (CheckList). Any goroutine may call it, at any time.
func (r *Reflector) ReportRollback(proof string) { r.timeline.notify(proof) }
