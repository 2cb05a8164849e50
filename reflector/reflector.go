package reflector

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/kuberewind/kuberewind/delta"
)

// Reflector keeps a store fed with the changes of one resource.
type Reflector struct {
	// ShouldResync is asked each ResyncPeriod whether to call the store's
	// Resync; nil means yes. Set it before Run.
	ShouldResync func() bool
	// WatchListPageSize is the number of objects asked for in one page of a
	// list, Options.PageSize unless changed. Set it before Run.
	WatchListPageSize int64

	options     Options
	expectation expectation
	source      cache.ListerWatcherWithContext
	out         outlet
	clock       clock.Clock
	log         *slog.Logger
	retry       *delays     // between retries
	retryDenied *delays     // between retries of what the server refuses
	retryLeft   *delays     // between retries of the list after a history was left
	reversals   chan string // proofs, from any goroutine

	mu     sync.RWMutex // protects lastRV, a copy of at.Newest that anyone may ask for
	lastRV string

	// What follows belongs to the goroutine inside ListAndWatch.

	at          cursor
	provisional bool    // at is Options.StartResourceVersion: nothing is recorded yet
	pending     *relist // a list must come before the next watch
	reversed    string  // what proves that at is in a history that is no more; a list must come
	health      health
	quiet       quiet
	pageLimit   int64 // adapted to the weight of pages; 0: WatchListPageSize
	bookmarks   bool  // the server has sent a bookmark
	useFresh    bool  // the next watch uses Options.Fresh
	resyncAt    time.Time
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
	expectation := expect(expectedType)
	orElse(&options.TypeDescription, expectation.String())
	options = options.withDefaults()
	denied, left := *options.Backoff, *options.Backoff
	denied.Cap = options.ForbiddenRetry
	if left.Cap == 0 || left.Cap > leftRetry {
		left.Cap = leftRetry
	}
	r := &Reflector{
		WatchListPageSize: options.PageSize,
		options:           options,
		expectation:       expectation,
		source:            cache.ToListerWatcherWithContext(lw),
		out:               newOutlet(store),
		clock:             options.Clock,
		log:               options.Logger.With("reflector", options.Name),
		retry:             newDelays(*options.Backoff),
		retryDenied:       newDelays(denied),
		retryLeft:         newDelays(left),
		reversals:         make(chan string, 1),
		health:            health{interrupted: options.Interrupted},
		quiet:             quiet{unmarked: options.Unmarked, since: options.Clock.Now()},
	}
	r.startAt(options.ResourceVersion, options.StartResourceVersion)
	if options.ListCause == delta.CauseHistoryReversed {
		r.reversed = "it had gone backwards before"
	}
	return r
}

func (r *Reflector) startAt(recorded, start string) {
	switch {
	case delta.Resumable(recorded):
		r.at.Position = delta.At(recorded)
	case delta.Resumable(start):
		r.at.Position, r.provisional = delta.At(start), true
	}
	r.lastRV = r.at.Newest
}

// Name is Options.Name.
func (r *Reflector) Name() string { return r.options.Name }

// TypeDescription says in words what is reflected, for display only.
func (r *Reflector) TypeDescription() string { return r.options.TypeDescription }

// LastSyncResourceVersion is the newest resource version that the store has
// accepted, or the one to start from; "" before the first list.
func (r *Reflector) LastSyncResourceVersion() string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.lastRV
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
		delay := r.delayAfter(err)
		r.log.WarnContext(ctx, "list and watch ended, will retry",
			"error", err, "resource_version", r.at.Newest, "retry_in", delay)
		r.pauseUntil(ctx, delay, returned)
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
	err := r.follow(ctx)
	if ctx.Err() != nil && kindOf(err) != storeFailure {
		return nil
	}
	return r.failed(err)
}

// follow lists when it has to, then watches, over and over, until something
// fails.
func (r *Reflector) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		if err := r.inHistory(ctx); err != nil {
			return err
		}
		var ahead *stream
		if r.at.Newest == "" || r.pending != nil || r.reversed != "" {
			var err error
			if ahead, err = r.list(ctx); err != nil {
				return err
			}
		}
		if err := r.afterWatch(ctx, r.watch(ctx, ahead)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// recorded reports whether the store has a position in this stream.
func (r *Reflector) recorded() bool { return r.at.Newest != "" && !r.provisional }

// ResumeResourceVersion is where another reflector of the same store goes on
// with nothing left out, "" if it has to list. It may be called before Run and
// when that has returned.
func (r *Reflector) ResumeResourceVersion() string { return r.at.Complete }

// publish makes the position known, after the store has accepted everything up
// to it.
func (r *Reflector) publish() {
	r.mu.Lock()
	r.lastRV = r.at.Newest
	r.mu.Unlock()
	r.options.Hooks.Position(r.at.Complete)
}
