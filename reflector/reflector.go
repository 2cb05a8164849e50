package reflector

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
)

// Reflector keeps a store fed with the changes of one resource.
type Reflector struct {
	// ShouldResync is asked each ResyncPeriod whether to call the store's
	// Resync; nil means yes. Set it before Run.
	ShouldResync func() bool
	// WatchListPageSize is the number of objects asked for in one page of a
	// list, Options.PageSize unless changed. Set it before Run.
	WatchListPageSize int64

	options *Options
	log     *slog.Logger

	source    *source    // the server
	retries   *retries   // the pauses after failures
	place     *place     // where the stream is
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

// NewReflectorWithOptions returns a reflector that brings what lw lists and
// watches to the store. Each object must have the type of expectedType, and its
// apiVersion and kind if that is an *unstructured.Unstructured that has them;
// nil accepts any. Besides cache.ReflectorStore, the store may implement
// PagedStore, InterruptStore, cache.ReflectorBookmarkStore and
// cache.ResourceVersionUpdater. A transformer (cache.TransformingStore) is the
// store's to apply, as in client-go's queues.
func NewReflectorWithOptions(
	lw cache.ListerWatcher, expectedType any, store cache.ReflectorStore, options Options,
) *Reflector {
	expected := expect(expectedType)
	orElse(&options.TypeDescription, expected.String())
	options = options.withDefaults()
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
		source: r.source, delivery: r.delivery, place: r.place, quiet: r.quiet, retries: r.retries,
		options: options, log: r.log,
	}
	return r
}

// Name is Options.Name.
func (r *Reflector) Name() string { return r.options.Name }

// TypeDescription says in words what is reflected, for display only.
func (r *Reflector) TypeDescription() string { return r.options.TypeDescription }

// LastSyncResourceVersion is the newest resource version that the store has
// accepted, or the one to start from; "" before the first list.
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
		returned := r.options.Returned() // Before the attempt: none may fail unheard.
		err := r.ListAndWatchWithContext(ctx)
		if err == nil {
			continue
		}
		delay := r.retries.delayAfter(err, r.timeline.left != "")
		r.log.WarnContext(ctx, "list and watch ended, will retry",
			"error", err, "resource_version", r.place.at.Newest, "retry_in", delay)
		r.retries.pauseUntil(ctx, delay, returned)
	}
}

// ListAndWatch is ListAndWatchWithContext for a stop channel.
func (r *Reflector) ListAndWatch(stop <-chan struct{}) error {
	return r.ListAndWatchWithContext(wait.ContextForChannel(stop))
}

// ListAndWatchWithContext goes on from where the store is, and lists only if it
// must. It returns nil when the context has ended, and an error when something
// has failed after which a pause is due; the next call goes on.
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

// follow lists when it has to, then watches, over and over, until something
// fails.
func (r *Reflector) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := r.timeline.check(ctx); err != nil {
			return err
		}
		var ahead *openWatch
		if r.lists.due() {
			var err error
			if ahead, err = r.lists.list(ctx); err != nil {
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

// ResumeResourceVersion is where another reflector of the same store goes on
// with nothing left out, "" if it has to list. It may be called before Run and
// when that has returned.
func (r *Reflector) ResumeResourceVersion() string { return r.place.at.Complete }

// Reverse makes the stream leave its history: its watch ends, the store is told, and a list follows once History finds one
// truthful. Any goroutine may call it, at any time.
func (r *Reflector) Reverse(proof string) { r.timeline.tell(proof) }
