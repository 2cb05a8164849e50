package rollback

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
)

// Identity says whether the API server still serves the recorded cluster.
type Identity interface {
	// Check returns an error if the server serves another cluster, or does not answer.
	Check(ctx context.Context) error
	// Returned returns a channel that is closed when the server answers again.
	Returned() <-chan struct{}
}

// Streams holds the streams of a recorder, and which revisions of etcd each stream has. One write of the API server
// is one revision. So a revision of one stream belongs to no other stream of the same etcd.
type Streams struct {
	mu      sync.Mutex // protects the fields below, and the fields of Stream that say so
	streams []*Stream

	identity      Identity
	acting        sync.RWMutex // held while an event rolls streams back; taken before mu
	grouping      *grouping
	rollbacks     []pastRollback // rollbacks that this process found; protected by mu
	queueGaps     func(ctx context.Context, proof string, gaps []Gap) error
	servedAt      time.Time        // when a stream was last served something; protected by mu
	verifiedUntil time.Time        // as in Options
	beganAt       time.Time        // when this process began, by the record's clock
	gapsQueuedAt  time.Time        // when the gaps of a rollback were last queued, or a list after it was complete, by the record's clock; protected by mu
	now           func() time.Time // the record's clock
	allAdded      <-chan struct{}  // closed when all streams are added that were served at the start
}

// Stream is what the package knows of one stream: its revisions, and whether they are of the present history.
type Stream struct {
	all   *Streams
	index int   // its index among the streams
	id    int32 // its ID on record
	ask   asker

	// Streams.mu protects the fields below.
	etcd         *etcdState // shared by all streams that are known to be in it
	claims       claims
	progress     progress
	following    following
	listing      listing
	history      history
	living       living
	samples      streamSamples
	trust        trust
	unansweredAt time.Time // when the server last did not answer for it (sharesEtcd); zero if it did
}

// Options configure Streams.
type Options struct {
	// Identity says whether the server still serves the recorded cluster; nil means that it does.
	Identity Identity
	// Now is the record's clock; nil means the clock of this machine.
	Now func() time.Time
	// QueueGaps queues the gaps of all streams that an event rolls back, as one entry (I3); nil means that no gaps are
	// queued.
	QueueGaps func(ctx context.Context, proof string, gaps []Gap) error
	// Verified is the time up to which earlier recorders have recorded versions and checked them in etcd, by the
	// record's clock. It is zero if there were none.
	Verified time.Time
}

// New returns a Streams without any stream.
func New(options Options) *Streams {
	r := &Streams{
		identity: options.Identity, now: options.Now, queueGaps: options.QueueGaps, verifiedUntil: options.Verified,
	}
	r.grouping = newGrouping(r)
	if r.identity == nil {
		r.identity = noIdentity{}
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.beganAt = r.now()
	if r.queueGaps == nil {
		r.queueGaps = func(context.Context, string, []Gap) error { return nil }
	}
	return r
}

// noIdentity is the Identity of options without one.
type noIdentity struct{}

func (noIdentity) Check(context.Context) error { return nil }

func (noIdentity) Returned() <-chan struct{} { return nil }

// WhenAllAdded sets the channel that is closed when all streams are added that the server serves at the start. It
// must be called before any stream is followed.
func (r *Streams) WhenAllAdded(allAdded <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allAdded = allAdded
}

// Returned returns a channel that is closed when the server answers again.
func (r *Streams) Returned() <-chan struct{} { return r.identity.Returned() }

// recordTimeOf converts a time of this process to the record's clock.
func (r *Streams) recordTimeOf(at time.Time) time.Time { return r.now().Add(-time.Since(at)) }

// recordTimeIfKnown does the same. It returns zero for a zero time.
func (r *Streams) recordTimeIfKnown(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return r.recordTimeOf(at)
}

// Spec describes a stream.
type Spec struct {
	Name       string // for logs and proofs
	ID         int32  // its ID on record
	Namespaced bool
	// Canonical brings an object into the form in which it is recorded.
	Canonical cache.TransformFunc
}

// Add adds a stream.
func (r *Streams) Add(spec Spec) *Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Stream{
		all: r, index: len(r.streams), id: spec.ID, etcd: &etcdState{},
		ask: asker{name: spec.Name, namespaced: spec.Namespaced, canonical: spec.Canonical},
	}
	r.streams = append(r.streams, c)
	return c
}

// dropClaimsLocked drops the claims of all streams. When a rollback is found, no stream has a claim that is certainly of
// the new history.
func (r *Streams) dropClaimsLocked() {
	for _, c := range r.streams {
		c.claims.newest = nil
	}
}

// forgetLocked drops what the stream knew of its old history.
func (c *Stream) forgetLocked() {
	c.claims, c.progress.position, c.living, c.samples = claims{}, 0, nil, streamSamples{}
}

// allStreamsAdded reports whether this process has added a stream for each resource that was served at the start.
func (r *Streams) allStreamsAdded() bool {
	r.mu.Lock()
	allAdded := r.allAdded
	r.mu.Unlock()
	select {
	case <-allAdded:
		return true
	default:
		return false
	}
}

// canProveLocked reports whether the stream's versions can prove a rollback. As long as a past rollback is
// unmatched, they cannot: they would prove that one a second time, also for streams that were listed since.
func (c *Stream) canProveLocked() bool { return c.following.canAsk() && c.history.certain() }

// canAsk reports whether the server can be asked about the stream.
func canAsk(c *Stream) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.following.canAsk()
}
