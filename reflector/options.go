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
	// API servers send a bookmark about once a minute: two in a row may be
	// late, three are not.
	defaultSilenceTimeout = 3 * time.Minute
	defaultForbiddenRetry = time.Minute
	// Three such stretches are less than the five minutes that etcd keeps
	// unless the API server was told otherwise.
	defaultUnmarkedTimeout = 90 * time.Second

	// The steps of client-go's own reflector, which end at one request in 30 to
	// 60 seconds.
	backoffInit   = 800 * time.Millisecond
	backoffMax    = 30 * time.Second
	backoffFactor = 2.0
	backoffJitter = 1.0
	// A stream that did not need a pause for this long starts over with short
	// ones.
	backoffReset = 2 * time.Minute
	// leftRetry bounds the pause of a stream that has left a history and waits for a list of the new one. Only a look at least
	// once a minute shows for certain whether a watch cache was begun anew. The cache may forget what is older than 75 seconds
	// (apiserver's watch cache, eventFreshDuration).
	leftRetry = 10 * time.Second
)

// Options configures a Reflector. The zero value is a reflector that lists
// first and works with the defaults named below.
type Options struct {
	// Name identifies the reflector in logs. Default: TypeDescription.
	Name string
	// TypeDescription says in words what is reflected. Default: derived from
	// the expected type, as client-go does.
	TypeDescription string
	// ResyncPeriod is how often the store's Resync is called. 0, the default:
	// never.
	ResyncPeriod time.Duration

	// ResourceVersion is the recorded position from which to go on. "": nothing
	// is recorded.
	ResourceVersion string
	// StartResourceVersion is used when nothing is recorded. It is a resource version before which the resource had no
	// objects, such as that of its CustomResourceDefinition. If a watch from there works, or what came after can be recovered,
	// nothing was missed and no list is needed. Otherwise the resource is listed with cause first_list, as if this were not
	// set.
	StartResourceVersion string

	// ListCause is the cause of the list that is made when nothing is recorded, or when the stream cannot go on from what is
	// recorded. Default delta.CauseFirstList.
	ListCause delta.Cause

	// Interrupted is the cause with which an earlier reflector told the store that the stream cannot go on, if none has told
	// it since that it does. The store is told when it does. Default "": it was not told.
	Interrupted delta.Cause

	// PageSize is the number of objects asked for in one page of a list.
	// Default 500.
	PageSize int64
	// PageBytes bounds the weight of a page. If objects say how big they are (Size() int), the following pages ask for as many
	// as fit. It also bounds what is read ahead of a watch during a list. Default 8 MiB.
	PageBytes int64
	// BeforeList is called before a list is begun, and may wait until the store
	// can take one in. An error puts the list off. Default: nothing is waited for.
	BeforeList func(ctx context.Context) error
	// ListGate is entered before a list and left after it, so that few lists
	// run at a time. Default: no gate.
	ListGate func(ctx context.Context) (release func(), err error)

	// MinWatchTimeout is the shortest time for which a watch is asked. Each watch asks for a random time between it and twice
	// as much. Default 5 minutes.
	MinWatchTimeout time.Duration
	// SilenceTimeout is for how long a stream that has sent a bookmark may send
	// nothing before it is reconnected. Default 3 minutes.
	SilenceTimeout time.Duration

	// Unmarked says that the server sends no bookmarks of this resource. Default:
	// it is taken to when it has sent none for UnmarkedTimeout.
	Unmarked bool
	// UnmarkedTimeout is how often the reflector looks at a stream whose position no bookmark moves. A look proves that
	// nothing has happened, and moves the position. It needs RecoverRevisions. A stream without any bookmarks is looked at
	// more often if Revisions knows of less history: each sixth of it, 5 seconds at least. Default 90 seconds, in which a
	// server that sends bookmarks has sent one.
	UnmarkedTimeout time.Duration

	// Backoff spaces out retries. Default: 0.8 s, doubled up to 30 s, each with up to as much again at random. It grows only
	// up to 10 s while a list is awaited that shows the history after one that was left.
	Backoff *wait.Backoff
	// Returned gives a channel that is closed when a server that was away answers
	// again. Then the pause after a failure ends within a second, and the next
	// ones are short again. Default: nobody says so.
	Returned func() <-chan struct{}
	// ForbiddenRetry is up to where the pause grows while the server answers
	// 401, 403 or 404. Default 1 minute, with as much jitter as Backoff.
	ForbiddenRetry time.Duration
	// Fresh gives a source that uses a new connection, which may lead to
	// another API server. It is used for the watch that follows a 410, and
	// after silence. Default: 410 leads to a list at once.
	Fresh func() cache.ListerWatcher

	// RecoverRevisions is how many revisions of etcd after the position are looked at when no watch can give them any more. So
	// an expired history need not be a gap. A revision that is known to be another resource's costs nothing. Each other one
	// takes a list of one object, and if something has changed, one of all. Revisions are counted until a watch works. Default
	// 0: none.
	RecoverRevisions int
	// Afford is asked before each request of a recovery, so that all streams together do not ask too much of a server that has
	// just started. If it is false, the recovery ends, and what it has not found is a gap. Default: true.
	Afford func() bool
	// AffordLook is asked before each request of a look at a quiet stream. If it
	// says no, the look ends, and the next one is made in its turn. Default: yes.
	AffordLook func() bool
	// Revisions knows what is another resource's. Default: nothing is known.
	Revisions Revisions

	// History knows whether the server's history is still that of
	// ResourceVersion. It is asked before each watch. Default: nobody is asked.
	History History

	// Clock times pauses, resyncs and silence. Default: the real one.
	Clock clock.Clock
	// Logger gets what Run retries and why a list was needed. Default: nothing
	// is logged.
	Logger *slog.Logger
	// Hooks are told what happens, for metrics.
	Hooks Hooks
}

// Hooks are called when something happens; each may be nil. They must return
// quickly, and the watch hooks may be called from two goroutines at once.
type Hooks struct {
	// Relist is called when the first page of a list has come.
	Relist func(cause delta.Cause)
	// ListPage is called for each page; bytes is 0 if the objects do not say.
	ListPage func(items int, bytes int64)
	// Undecodable is called for items of a list that could not be read. It is also called for a place in the stream that
	// cannot be read, so that a list has to pass it.
	Undecodable func(items int)
	// WatchOpened is called when the server has accepted a watch.
	WatchOpened func(resourceVersion string)
	// WatchClosed is called when a watch that was opened ends. Nil means that it ended cleanly or was not needed any more.
	WatchClosed func(err error)
	// Recovered is called when it was tried to recover history that no watch
	// can give any more.
	Recovered func(Recovery)
	// Position is called when the store has accepted everything up to and including a resource version. More deletes of a
	// newer version may follow.
	Position func(resourceVersion string)
}

// Revisions is what is known from elsewhere of the etcd that keeps the resource.
type Revisions interface {
	// Unaccounted gives the revisions after from, up to to, in order, that may be of this resource. It leaves out only those
	// that are certainly another's. With wait, it may wait a while until others find out; without, it may return an error
	// instead. If there are more than limit, it gives more than limit, and need not give all.
	Unaccounted(ctx context.Context, from, to uint64, limit int, wait bool) ([]uint64, error)
	// Kept is how much history etcd was found to keep, 0 if that is not known.
	Kept() time.Duration
}

// Recovery is one attempt to recover history.
type Recovery struct {
	From, To  string
	Revisions int  // that had to be looked at
	Requests  int  // that it took
	Versions  int  // that were found
	Complete  bool // everything up to To was brought
}

// withDefaults fills in what was left out.
func (o Options) withDefaults() Options {
	orElse(&o.ListCause, delta.CauseFirstList)
	orElse(&o.PageSize, defaultPageSize)
	orElse(&o.PageBytes, defaultPageBytes)
	orElse(&o.MinWatchTimeout, defaultMinWatchTimeout)
	orElse(&o.SilenceTimeout, defaultSilenceTimeout)
	orElse(&o.UnmarkedTimeout, defaultUnmarkedTimeout)
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
	if o.Afford == nil {
		o.Afford = func() bool { return true }
	}
	if o.AffordLook == nil {
		o.AffordLook = func() bool { return true }
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
