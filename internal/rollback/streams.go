package rollback

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"
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

	identity   Identity
	acting     sync.RWMutex // held while streams leave a history together, before mu
	grouping   *grouping
	rollbacks  []pastRollback // those found by this process; protected by mu
	record     func(ctx context.Context, proof string, gaps []Gap) error
	served     time.Time        // when a stream was served something last; protected by mu
	verified   time.Time        // as in Options
	began      time.Time        // when this process did, by the clock of the record
	gapsQueued time.Time        // when streams last left a history, or were listed after that, by the clock of the record; protected by mu
	now        func() time.Time // the clock of the record
	allAdded   <-chan struct{}  // closed when all streams have been opened that were served at the start
}

// Stream is what is known of the etcd of one stream: which revisions are its, and whether they are of the history that there is.
type Stream struct {
	all    *Streams
	number int   // among the streams
	record int32 // on record
	ask    asker

	// Protected by all.mu.
	etcd         *etcd // it is shared by those that are known to be in one
	claims       claims
	progress     progress
	following    following
	listing      listing
	history      history
	living       living
	samples      streamSamples
	trust        trust
	unansweredAt time.Time // when the server last did not answer which etcd it is in; zero where it did
}

// Options say what Streams work with.
type Options struct {
	// Identity says whether the server is the one that is recorded; nil for nobody who knows.
	Identity Identity
	// Now is the clock of the record; nil for that of this machine.
	Now func() time.Time
	// Record queues the gaps of streams that leave a history together, as one entry (I3); nil for nowhere.
	Record func(ctx context.Context, proof string, gaps []Gap) error
	// Verified is up to when the recorders before this one have recorded, and looked for that in etcd again. It is by the clock of
	// the record, and zero if there were none.
	Verified time.Time
}

// New gives no streams yet.
func New(options Options) *Streams {
	r := &Streams{
		identity: options.Identity, now: options.Now, record: options.Record, verified: options.Verified,
	}
	r.grouping = newGrouping(r)
	if r.identity == nil {
		r.identity = noIdentity{}
	}
	if r.now == nil {
		r.now = time.Now
	}
	r.began = r.now()
	if r.record == nil {
		r.record = func(context.Context, string, []Gap) error { return nil }
	}
	return r
}

// unasked is an Identity that nobody asks.
type noIdentity struct{}

func (noIdentity) Check(context.Context) error { return nil }

func (noIdentity) Returned() <-chan struct{} { return nil }

// AnnouncedBy says what is closed when all streams have been added that the server serves at the start. It is called before any
// is followed.
func (r *Streams) WhenAllAdded(allAdded <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.allAdded = allAdded
}

// Returned gives a channel that is closed when the server answers again.
func (r *Streams) Returned() <-chan struct{} { return r.identity.Returned() }

// recordedAt is a moment by the clock of the record.
func (r *Streams) recordTimeOf(at time.Time) time.Time { return r.now().Add(-time.Since(at)) }

// recordedIf is a moment by the clock of the record, zero if it is not known.
func (r *Streams) recordTimeIfKnown(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return r.recordTimeOf(at)
}

// Spec says which stream it is.
type Spec struct {
	Name       string // as logs say it
	Record     int32  // its number on record
	Namespaced bool
	// Canonical brings an object into the form in which it is recorded.
	Canonical cache.TransformFunc
}

// Add adds a stream.
func (r *Streams) Add(spec Spec) *Stream {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := &Stream{
		all: r, number: len(r.streams), record: spec.Record, etcd: &etcd{},
		ask: asker{name: spec.Name, namespaced: spec.Namespaced, canonical: spec.Canonical},
	}
	r.streams = append(r.streams, c)
	return c
}
