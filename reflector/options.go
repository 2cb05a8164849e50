package reflector

import (
	"context"
	"log/slog"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	"github.com/kuberewind/kuberewind/delta"
)

const (
	defaultPageSize        = 500
	defaultPageBytes       = 8 << 20
	defaultMinWatchTimeout = 5 * time.Minute
	// API servers send a bookmark about once a minute: two in a row may be late, three are not.
	defaultSilenceTimeout = 3 * time.Minute
	defaultForbiddenRetry = time.Minute
	// Three such intervals are less than five minutes. Etcd keeps that much history unless the API server is configured
	// otherwise.
	defaultLookInterval = 90 * time.Second

	// These are the steps of client-go's own reflector. They end at one request in 30 to 60 seconds.
	backoffInit   = 800 * time.Millisecond
	backoffMax    = 30 * time.Second
	backoffFactor = 2.0
	backoffJitter = 1.0
	// If a stream needed no pause for this long, the pauses start short again.
	backoffReset = 2 * time.Minute
	// rollbackRetry bounds the pause of a stream that waits for the first list after a rollback. Only a look at least
	// once a minute shows for certain whether a watch cache was built again. The cache may forget events that are older
	// than 75 seconds (apiserver's watch cache, eventFreshDuration).
	rollbackRetry = 10 * time.Second
)

// Options configures a Reflector. The zero value is a reflector that lists
// first and works with the defaults named below.
type Options struct {
	// Name identifies the reflector in logs. Default: TypeDescription.
	Name string
	// TypeDescription describes the reflected type in words. Default: derived from the expected type, as client-go
	// does.
	TypeDescription string
	// ResyncPeriod is how often the reflector calls the store's Resync. 0, the default: never.
	ResyncPeriod time.Duration

	// ResourceVersion is the recorded position from which to go on. "": nothing is recorded.
	ResourceVersion string
	// StartResourceVersion is used if nothing is recorded. It is a resource version before which the resource had no
	// objects, such as the version of its CustomResourceDefinition. If a watch from there works, or the later changes
	// can be recovered, nothing was missed and no list is needed. Otherwise the reflector lists with cause first_list,
	// as if this were not set.
	StartResourceVersion string

	// ListCause is the cause of a list if nothing is recorded, or if the stream cannot go on from the record. Default
	// delta.CauseFirstList.
	ListCause delta.Cause

	// Interrupted is the cause with which an earlier reflector interrupted the stream, if none has resumed it since.
	// The store learns when the stream goes on. Default "": the stream is not interrupted.
	Interrupted delta.Cause

	// PageSize is the number of objects that one page of a list requests. Default 500.
	PageSize int64
	// PageBytes bounds the size of a page. If objects have a method Size() int, the following pages request as many as
	// fit. It also bounds the events that are read ahead of a watch during a list. Default 8 MiB.
	PageBytes int64
	// BeforeList is called before a list begins, and may wait until the store can receive one. After an error the list
	// comes later. Default: no wait.
	BeforeList func(ctx context.Context) error
	// ListGate is entered before a list and released after it, so that few lists run at a time. Default: no gate.
	ListGate func(ctx context.Context) (release func(), err error)

	// MinWatchTimeout is the shortest timeout of a watch. Each watch requests a random timeout between it and twice as
	// much. Default 5 minutes.
	MinWatchTimeout time.Duration
	// SilenceTimeout is how long a stream that has sent a bookmark may send nothing before the reflector reconnects.
	// Default 3 minutes.
	SilenceTimeout time.Duration

	// NoBookmarks says that the server sends no bookmarks of this resource. Default: this is assumed if it has sent none
	// for LookInterval.
	NoBookmarks bool
	// LookInterval is how often the reflector looks at a stream whose position no bookmark moves. A look proves that
	// nothing has happened, and moves the position. It needs RecoverRevisions. If Revisions knows of less history, a
	// stream without any bookmarks is looked at more often: each sixth of the history, 5 seconds at least. As long as
	// Revisions does not know, it looks every 5 seconds. Default 90 seconds, within which a server that sends bookmarks has sent one.
	LookInterval time.Duration

	// Backoff spaces out retries. Default: 0.8 s, doubled up to 30 s, each with up to as much again at random. While
	// the first list after a rollback is due, it grows only up to 10 s.
	Backoff *wait.Backoff
	// Returned returns a channel that is closed when a server that was away answers again. Then the pause after a
	// failure ends within a second, and the next ones are short again. Default: no such channel.
	Returned func() <-chan struct{}
	// ForbiddenRetry bounds the growing pause while the server answers 401, 403 or 404. Default 1 minute, with as much
	// jitter as Backoff.
	ForbiddenRetry time.Duration
	// Fresh returns a source that uses a new connection, which may lead to another API server. The reflector uses it
	// for the watch that follows a 410, and after silence. Default: 410 leads to a list at once.
	Fresh func() cache.ListerWatcher

	// RecoverRevisions is how many revisions of etcd after the position the reflector looks at if no watch can give
	// them any more. So an expired history need not be a gap. A revision that is known to belong to another resource
	// costs nothing. Each other one takes a list of one object, and if something has changed, one of all. Revisions are
	// counted until a watch works. Default 0: none.
	RecoverRevisions int
	// AllowRecovery decides about each request of a recovery, so that all streams together do not overload a server that has
	// just started. If it returns false, the recovery ends, and the part that it has not found is a gap. Default: true.
	AllowRecovery func() bool
	// AllowLook decides about each request of a look at a quiet stream. If it returns false, the look ends, and the
	// next one comes in its turn. Default: true.
	AllowLook func() bool
	// Revisions knows which revisions belong to other resources. Default: none are known.
	Revisions Revisions

	// History knows whether the server's history is still that of ResourceVersion. The reflector asks it before each
	// list, before each watch that no list precedes, and after a 410. Default: it asks nothing.
	History History

	// Clock measures pauses, resyncs and silence. Default: the real clock.
	Clock clock.Clock
	// Logger gets the retries of Run and the reason for each list. Default: nothing is logged.
	Logger *slog.Logger
	// Hooks are called for metrics.
	Hooks Hooks
}

// Hooks are called when something happens; each may be nil. They must return quickly. Two goroutines may call the watch
// hooks at once.
type Hooks struct {
	// Relist is called when the first page of a list has come.
	Relist func(cause delta.Cause)
	// ListPage is called for each page; bytes is 0 if the objects do not say.
	ListPage func(items int, bytes int64)
	// Undecodable is called for items of a list that could not be read. It is also called for a place in the stream
	// that cannot be read, so that a list has to pass it.
	Undecodable func(items int)
	// WatchOpened is called when the server has accepted a watch.
	WatchOpened func(resourceVersion string)
	// WatchClosed is called when a watch that was opened ends. Nil means that it ended cleanly or was not needed any more.
	WatchClosed func(err error)
	// Recovered is called after each attempt to recover history that no watch can give any more.
	Recovered func(Recovery)
	// Position is called when the store has accepted everything up to and including a resource version. More deletes of a
	// newer version may follow.
	Position func(resourceVersion string)
}

// Revisions is the knowledge of other streams about the resource's etcd.
type Revisions interface {
	// Unaccounted returns the revisions after from, up to to, in order, that may belong to this resource. It omits only
	// revisions that certainly belong to another. If wait is true, it may wait a while until other streams find out. If
	// wait is false, it may return an error instead. If there are more than limit, it returns more than limit, and need
	// not return all.
	Unaccounted(ctx context.Context, from, to uint64, limit int, wait bool) ([]uint64, error)
	// Kept returns how much history etcd was found to keep, 0 if that is not known.
	Kept() time.Duration
}

// Recovery is one attempt to recover history.
type Recovery struct {
	From, To  string
	Revisions int  // revisions that had to be looked at
	Requests  int  // requests of the attempt
	Versions  int  // versions that were found
	Complete  bool // everything up to To was delivered
}

// withDefaults returns the options with the defaults set.
func withDefaults(o Options) Options {
	orElse(&o.ListCause, delta.CauseFirstList)
	orElse(&o.PageSize, defaultPageSize)
	orElse(&o.PageBytes, defaultPageBytes)
	orElse(&o.MinWatchTimeout, defaultMinWatchTimeout)
	orElse(&o.SilenceTimeout, defaultSilenceTimeout)
	orElse(&o.LookInterval, defaultLookInterval)
	orElse(&o.ForbiddenRetry, defaultForbiddenRetry)
	orElse(&o.Name, o.TypeDescription)
	if o.Backoff == nil {
		o.Backoff = defaultBackoff()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.BeforeList == nil {
		o.BeforeList = func(context.Context) error { return nil }
	}
	if o.ListGate == nil {
		o.ListGate = func(context.Context) (func(), error) { return func() {}, nil }
	}
	if o.AllowRecovery == nil {
		o.AllowRecovery = func() bool { return true }
	}
	if o.AllowLook == nil {
		o.AllowLook = func() bool { return true }
	}
	if o.Returned == nil {
		o.Returned = func() <-chan struct{} { return nil }
	}
	if o.History == nil {
		o.History = noHistory{}
	}
	o.Hooks = o.Hooks.withDefaults()
	return o
}

func (h Hooks) withDefaults() Hooks {
	if h.Relist == nil {
		h.Relist = func(delta.Cause) {}
	}
	if h.ListPage == nil {
		h.ListPage = func(int, int64) {}
	}
	if h.Undecodable == nil {
		h.Undecodable = func(int) {}
	}
	if h.WatchOpened == nil {
		h.WatchOpened = func(string) {}
	}
	if h.WatchClosed == nil {
		h.WatchClosed = func(error) {}
	}
	if h.Recovered == nil {
		h.Recovered = func(Recovery) {}
	}
	if h.Position == nil {
		h.Position = func(string) {}
	}
	return h
}

func defaultBackoff() *wait.Backoff {
	return &wait.Backoff{
		Duration: backoffInit,
		Cap:      backoffMax,
		Steps:    int(math.Ceil(float64(backoffMax) / float64(backoffInit))),
		Factor:   backoffFactor,
		Jitter:   backoffJitter,
	}
}

// orElse sets a value that is still its type's zero.
func orElse[T comparable](value *T, otherwise T) {
	var zero T
	if *value == zero {
		*value = otherwise
	}
}
