package rollback

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
)

const (
	// keptRevisions bounds how many revisions are kept of one stream: its newest, in 4 MiB at most. A position is no older than a few
	// minutes where recovery has a chance.
	keptRevisions = 1 << 19
	// busierWait is how long a stream waits for busier ones to find out what is theirs. An API server keeps the history
	// that follows for more than a minute.
	busierWait = 10 * time.Second
	// busierLongWait is how long a stream waits if it would have to look at more than fewLooks revisions itself. Every other
	// stream would do the same, and hold up the very streams that can tell.
	busierLongWait = time.Minute
	fewLooks       = 50
	// busierLongestWait bounds the wait for streams that make progress. Positions are a minute old when a server restarts, and
	// etcd keeps five. If nobody writes to a resource, its watch cache does not fill.
	busierLongestWait = 3 * time.Minute
	// busierLook is how often it is looked whether they have.
	busierLook = 100 * time.Millisecond
	// opensFor is how long a watch has been open at least when it will no longer be refused because its position is too old.
	opensFor = time.Second
)

// Identity tells whether the API server still serves the cluster that is recorded.
type Identity interface {
	// Check gives an error if it does not, or does not answer.
	Check(ctx context.Context) error
	// Returned gives a channel that is closed when it answers again.
	Returned() <-chan struct{}
}

// Streams are the streams of a recorder, and what is known of the revisions of etcd: of which stream each is. One write of the API server is one revision.
// So a revision of one stream is of no other stream in the same etcd.
type Streams struct {
	mu      sync.Mutex // protects what follows, and the fields of Stream that say so
	streams []*Stream

	identity  Identity
	acting    sync.RWMutex     // held while streams leave a history together, before mu
	tying     chan struct{}    // holds one while streams are tied
	tried     map[*Stream]bool // of which it was looked lately in which etcd they are; of who is in tying
	rollbacks []earlier        // those found by this process; protected by mu
	record    func(ctx context.Context, proof string, gaps []Gap) error
	served    time.Time        // when a stream was served something last; protected by mu
	taken     time.Time        // when the recorder before this one was served last, by the clock of the record; zero if there was none
	now       func() time.Time // the clock of the record
	announced <-chan struct{}  // closed when all streams have been opened that were served at the start
}

// Stream is what is known of the etcd of one stream: which revisions are its, and whether they are of the history that there is.
type Stream struct {
	all        *Streams
	number     int // among the streams
	name       string
	record     int32 // its number there; protected by all.mu
	namespaced bool
	canonical  cache.TransformFunc

	// Protected by all.mu.
	lister   func(namespace string) cache.ListerWithContext
	claimed  uint64    // how many revisions were its
	newest   []uint64  // the newest of these, in order
	position uint64    // up to which the stream has said what is its
	moved    time.Time // when it last came further
	opened   time.Time
	denied   bool // the server refuses it, or does not serve it
	living   living
	fresh    samples   // of what was served since the last probe
	due      samples   // for which there was no answer then, and those of a recorder before this one
	paused   samples   // that were served before a silence
	last     sample    // the newest that was served of this etcd; of the head
	heard    time.Time // when something was served of it; of the head
	cohort   *Stream   // a stream in the same etcd, if one is known that others refer to as well
	tied     bool      // it was looked in which etcd it is
	// reverse has the stream leave its history; nil where it is not followed.
	reverse  func(proof string)
	reversed bool            // it has left its history, and was not listed since
	proof    string          // why it has left the last one
	leftThen bool            // the same when the list under way began
	lists    bool            // that list has not come to its end
	anew     bool            // it is one after a history that is no more
	earlier  []earlier       // rollbacks found before it was opened, until it is known whether they were of its etcd
	stranger *Stream         // who has proved that its history is no more, if that may be of another etcd
	until    deltafifo.Until // up to where it was complete when it left alone
	begin    uint64          // where it began in its history, for this process; 0 until that is known
	since    time.Time       // when that was, by the clock of the record
	began    time.Time       // when the list under way began
	history  int             // how many histories it has left, or may have
	undone   witness         // what was served and is not in etcd any more
	doubt    *doubt          // what the server's cache has to show before its lists are trusted; nil for nothing
	recorded uint64          // the newest revision that comes from the record; the position may be behind it
	resumed  uint64          // where this process has taken over from the record
	settled  []sample        // versions that etcd was seen to hold for certain; of the head
	settling sample          // one that may be the next; of the head
	trail    []footprint     // what was served of this etcd, in order of time; of the head
	noted    time.Time       // when the newest of it was
	cached   window
	kept     time.Duration // how much history this etcd keeps; of the head
	silent   time.Time     // when the server last did not answer which etcd it is in; zero where it did
}

// Options say what Streams work with.
type Options struct {
	// Identity says whether the server is the one that is recorded; nil for nobody who knows.
	Identity Identity
	// Now is the clock of the record; nil for that of this machine.
	Now func() time.Time
	// Record queues the gaps of streams that leave a history together, as one entry (I3); nil for nowhere.
	Record func(ctx context.Context, proof string, gaps []Gap) error
	// Taken is when the recorder before this one was served last, by the clock of the record; zero if there was none.
	Taken time.Time
}

// New gives no streams yet.
func New(options Options) *Streams {
	r := &Streams{
		identity: options.Identity, now: options.Now, record: options.Record, taken: options.Taken,
		tying: make(chan struct{}, 1), tried: map[*Stream]bool{},
	}
	if r.identity == nil {
		r.identity = unasked{}
	}
	if r.now == nil {
		r.now = time.Now
	}
	if r.record == nil {
		r.record = func(context.Context, string, []Gap) error { return nil }
	}
	return r
}

// unasked is an Identity that nobody asks.
type unasked struct{}

func (unasked) Check(context.Context) error { return nil }

func (unasked) Returned() <-chan struct{} { return nil }

// AnnouncedBy says what is closed when all streams have been added that the server serves at the start. It is called before any
// is followed.
func (r *Streams) AnnouncedBy(announced <-chan struct{}) { r.announced = announced }

// recordedAt is a moment by the clock of the record.
func (r *Streams) recordedAt(at time.Time) time.Time { return r.now().Add(-time.Since(at)) }

// Spec says which stream it is.
type Spec struct {
	Name       string // as logs say it
	Namespaced bool
	// Canonical brings an object into the form in which it is recorded.
	Canonical cache.TransformFunc
}

// Add adds a stream.
func (r *Streams) Add(spec Spec) *Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Stream{all: r, number: len(r.streams), name: spec.Name, namespaced: spec.Namespaced, canonical: spec.Canonical}
	r.streams = append(r.streams, c)
	return c
}

// ListWith says how the stream is listed in a namespace from now on; an empty one means all.
func (c *Stream) ListWith(lister func(namespace string) cache.ListerWithContext) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.lister = lister
}

// in gives what lists the stream in a namespace.
func (c *Stream) in(namespace string) cache.ListerWithContext {
	c.all.mu.Lock()
	lister := c.lister
	c.all.mu.Unlock()
	return lister(namespace)
}

// Saw notes that a version of an object was served.
func (c *Stream) Saw(o *kube.Object, deleted bool) {
	revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return
	}
	w := witnessOf(o, revision)
	notes, paused := c.claim(w, deleted)
	if notes {
		c.note(w)
	}
	if paused != nil {
		paused.owe()
	}
}

// claim notes whose the revision is, and reports whether the version has to be noted as well. If there was a silence, it gives
// what was served before it.
func (c *Stream) claim(w witness, deleted bool) (notes bool, paused *sample) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.served = time.Now()
	w.at = c.all.served
	c.claimLocked(w.revision)
	c.living.remember(w, deleted)
	c.cached.served(w.revision)
	if c.reversed { // What a watch serves that has not ended yet is of no history that counts.
		return false, nil
	}
	w.deleted = deleted
	if c.sampleLocked(w, c.all.served); deleted {
		return false, nil
	}
	return c.notesLocked(), c.pauseLocked(w, c.all.served)
}

func (c *Stream) claimLocked(revision uint64) {
	c.claimed++
	at := len(c.newest)
	if at > 0 && revision <= c.newest[at-1] {
		var known bool
		if at, known = slices.BinarySearch(c.newest, revision); known {
			return
		}
	}
	c.newest = slices.Insert(c.newest, at, revision)
	if len(c.newest) > keptRevisions {
		c.newest = slices.Clone(c.newest[keptRevisions/2:])
	}
}

// withinLocked are the stream's revisions after from, up to to: none where that comes before it.
func (c *Stream) withinLocked(from, to uint64) []uint64 {
	if to <= from {
		return nil
	}
	first, _ := slices.BinarySearch(c.newest, from+1)
	last, _ := slices.BinarySearch(c.newest, to+1)
	return c.newest[first:last]
}

// Reached notes up to where the stream has said what is its.
func (c *Stream) Reached(resourceVersion string) {
	position, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.served = time.Now()
	if position > c.position {
		c.position, c.moved = position, c.all.served
	}
	if c.begin == 0 {
		c.begin = position
	}
}

// Watching notes that a watch has been opened.
func (c *Stream) Watching(resourceVersion string) {
	from, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		from = 0 // opaque versions cannot be compared
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.denied, c.opened = false, time.Now()
	c.cached.opened(from)
}

// Closed notes that it has ended.
func (c *Stream) Closed(err error) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.cached.closed(c.opened, c.all.served, err)
	c.opened = time.Time{}
}

// Interrupted notes why the stream cannot be followed.
func (c *Stream) Interrupted(cause delta.Cause) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.denied = cause == delta.CauseForbidden || cause == delta.CauseUnauthorized || cause == delta.CauseNotFound
}

// Returned gives a channel that is closed when the server answers again.
func (c *Stream) Returned() <-chan struct{} { return c.all.identity.Returned() }

// asksLocked reports whether the server can be asked for the stream. It cannot for one that is not served any more.
func (c *Stream) asksLocked() bool { return c.reverse != nil && !c.denied }

func (c *Stream) asks() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.asksLocked()
}

var (
	_ reflector.Revisions = (*Stream)(nil)
	_ reflector.History   = (*Stream)(nil)
)

// errBusierComesFurther has a look be made again in its turn.
var errBusierComesFurther = errors.New("a busier stream is about to say which revisions are its")

// Unaccounted implements reflector.Revisions. The busiest stream goes first: what it finds to be its, the others need not
// look at.
func (c *Stream) Unaccounted(ctx context.Context, from, to uint64, limit int, wait bool) ([]uint64, error) {
	if unclaimed, moved := c.mayLearn(from, to); !wait && unclaimed > fewLooks && time.Since(moved) < busierLongWait {
		return nil, errBusierComesFurther
	}
	if wait {
		if err := c.awaitBusier(ctx, from, to); err != nil {
			return nil, err
		}
	}
	trusted, err := c.trusted(ctx, from, to, wait)
	if err != nil {
		return nil, err
	}
	var left []uint64
	for revision := from + 1; revision <= to && len(left) <= limit; revision++ {
		if len(trusted) > 0 && trusted[0] == revision {
			trusted = trusted[1:]
			continue
		}
		left = append(left, revision)
	}
	return left, nil
}

// awaitBusier returns when no busier stream is on its way to say more.
func (c *Stream) awaitBusier(ctx context.Context, from, to uint64) error {
	began := time.Now()
	look := time.NewTicker(busierLook)
	defer look.Stop()
	for {
		limit := busierWait
		unclaimed, moved := c.mayLearn(from, to)
		switch {
		case unclaimed == 0:
			return nil
		case unclaimed > fewLooks:
			limit = busierLongWait
			if moved.Before(began) {
				moved = began
			}
		default:
			moved = began
		}
		if time.Since(moved) >= limit || time.Since(began) >= busierLongestWait {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-look.C:
		}
	}
}

// mayLearn gives how many revisions nobody has claimed, and when a busier stream last came further. If no busier stream is
// still behind them, it gives 0. A stream is busier if more revisions were its. That order lets no two streams wait for each
// other.
func (c *Stream) mayLearn(from, to uint64) (unclaimed int, moved time.Time) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	busier := false
	for _, other := range c.all.streams {
		if !other.asksLocked() {
			continue
		}
		follows := other.position >= to || !other.opened.IsZero() && time.Since(other.opened) > opensFor
		if !follows && (other.claimed > c.claimed || other.claimed == c.claimed && other.number < c.number && other.claimed > 0) {
			busier = true
			if other.moved.After(moved) {
				moved = other.moved
			}
		}
	}
	if !busier || to <= from {
		return 0, moved
	}
	claimed := 0
	for _, other := range c.all.streams {
		claimed += len(other.withinLocked(from, to))
	}
	return max(0, int(min(to-from, math.MaxInt32))-claimed), moved
}

// proved is up to where etcd has the history in which streams of one etcd were served. It is 0 if etcd has another history, or
// does not know. It looks for the newest version of each stream, beginning with the newest of all. The error is that no
// version has shown it, and that the server did not answer for a stream.
func proved(ctx context.Context, together []*Stream) (revision uint64, failed error) {
	var newest []footprint
	for _, c := range together {
		if w := c.seen(); w.revision != 0 {
			newest = append(newest, footprint{of: c, witness: w})
		}
	}
	slices.SortFunc(newest, func(a, b footprint) int { return cmp.Compare(b.revision, a.revision) })
	for _, f := range newest[:min(len(newest), askedBeside)] {
		switch what, err := f.of.look(ctx, f.witness, f.revision); {
		case err != nil:
			failed = errors.Join(failed, err)
		case what == same:
			return f.revision, nil
		case what == unknown: // The server may not have it for this one alone, where a conversion fails.
		default:
			return 0, nil
		}
	}
	return 0, failed
}

// union gives the revisions of some streams, in order and each once.
func (c *Stream) union(of []*Stream, from, to uint64) []uint64 {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	var all []uint64
	for _, other := range of {
		all = append(all, other.withinLocked(from, to)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (c *Stream) seen() witness {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.living.newest()
}

// claimants are the other streams that have claimed one of the revisions.
func (c *Stream) claimants(from, to uint64) []*Stream {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	var others []*Stream
	for _, other := range c.all.streams {
		if other != c && len(other.withinLocked(from, to)) > 0 {
			others = append(others, other)
		}
	}
	return others
}
