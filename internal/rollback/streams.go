package rollback

import (
	"context"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/deltafifo"
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
	all    *Streams
	number int   // among the streams
	record int32 // its number there; protected by all.mu
	ask    asker

	// Protected by all.mu.
	claimed  uint64    // how many revisions were its
	newest   []uint64  // the newest of these, in order
	position uint64    // up to which the stream has said what is its
	moved    time.Time // when it last came further
	opened   time.Time
	denied   bool // the server refuses it, or does not serve it
	living   living
	fresh    samples // of what was served since the last probe
	due      samples // for which there was no answer then, and those of a recorder before this one
	paused   samples // that were served before a silence
	etcd     *etcd   // it is shared by those that are known to be in one
	// reverse has the stream leave its history; nil where it is not followed.
	reverse  func(proof string)
	reversed bool            // it has left its history, and was not listed since
	proof    string          // why it has left the last one
	leftThen bool            // the same when the list under way began
	lists    bool            // that list has not come to its end
	anew     bool            // it is one after a history that is no more
	earlier  []earlier       // rollbacks found before it was opened, until it is known whether they were of its etcd
	until    deltafifo.Until // up to where it was complete when it left alone
	begin    uint64          // where it began in its history, for this process; 0 until that is known
	since    time.Time       // when that was, by the clock of the record
	began    time.Time       // when the list under way began
	history  int             // how many histories it has left, or may have
	recorded uint64          // the newest revision that comes from the record; the position may be behind it
	resumed  uint64          // where this process has taken over from the record
	trust    trust
	silent   time.Time // when the server last did not answer which etcd it is in; zero where it did
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
	c := &Stream{all: r, number: len(r.streams), etcd: &etcd{}, ask: asker{name: spec.Name, namespaced: spec.Namespaced, canonical: spec.Canonical}}
	r.streams = append(r.streams, c)
	return c
}
