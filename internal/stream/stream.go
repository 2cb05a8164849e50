package stream

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Stream is one resource in the record. It lasts as long as the process. The resource may be served in another version, vanish
// and come back: each time with another Run.
type Stream struct {
	resource  kube.Resource // by which the spool names it
	record    *postgres.Stream
	redaction *redact.Resource // nil if nothing is hidden
	etcd      *rollback.Stream
	counters  counters
	decisions decisions
	dating    dating
	standing  standing
	newest    []string // the newest revisions on record, until the first run
	// left is what a recorder before this one left of the stream in the spool; nil if there is nothing.
	left    *spooling.Leftover
	settled settled

	mu  sync.Mutex // protects what follows
	run *Run
	// excuse is why the position may be older than the server remembers. It is empty once the stream has gone on from there.
	excuse delta.Cause
}

// standing is how a stream stands between its runs. It belongs to the run, and to End if there is none: each begins when the one
// before has ended.
type standing struct {
	// listedUnder are the rules of the last list that came to its end, whether it is on record, in the spool or queued.
	listedUnder string
	// interrupted is why the stream cannot be followed, as it was last said; empty if it can.
	interrupted delta.Cause
	// ended is a resource version at which no object was left, as the definition of the resource was deleted. It is empty while there is a run.
	ended string
	// due is why a list is due. It ends the previous list, which may be recorded in part, or is the first under another
	// definition.
	due lifecycle.Reason
}

// settled is closed when the stream follows the server for the first time, or has said why it cannot.
type settled struct {
	once   sync.Once
	closed chan struct{}
}

func (s *settled) settle() { s.once.Do(func() { close(s.closed) }) }

// Settled is closed when the stream follows the server for the first time, or has said why it cannot.
func (s *Stream) Settled() <-chan struct{} { return s.settled.closed }

// Name implements schemacheck.Stream, spooling.Stream and sweep.Stream.
func (s *Stream) Name() string { return s.resource.String() }

// Resource implements spooling.Stream.
func (s *Stream) Resource() kube.Resource { return s.resource }

// Redaction implements spooling.Stream.
func (s *Stream) Redaction() *redact.Resource { return s.redaction }

// Record implements spooling.Stream.
func (s *Stream) Record() *postgres.Stream { return s.record }

// Known implements sweep.Stream.
func (s *Stream) Known() cache.KeyListerGetter { return s.record.Known() }

// Schema implements schemacheck.Stream.
func (s *Stream) Schema() string { return s.record.Schema() }

// Serving implements schemacheck.Stream.
func (s *Stream) Serving() (resource kube.Resource, ok bool) {
	run := s.Current()
	if run == nil || run.listing.Load() {
		return kube.Resource{}, false
	}
	return run.served, true
}

// Remembers implements spooling.Stream.
func (s *Stream) Remembers(namespace string) bool { return s.decisions.remembers(namespace) }

// Decided gives the decisions that are on record.
func (s *Stream) Decided() map[types.UID]bool {
	lives := map[types.UID]bool{}
	for _, uid := range s.record.ExcludedUIDs() {
		lives[uid] = false
	}
	for _, key := range s.record.Known().ListKeys() {
		known, ok, _ := s.record.Known().GetByKey(key)
		if !ok {
			continue
		}
		object := known.(postgres.KnownObject)
		if s.Remembers(object.GetNamespace()) {
			lives[object.GetUID()] = true
		}
	}
	return lives
}

// Current is the newest run, nil if there was none. It may have ended.
func (s *Stream) Current() *Run {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// Halt ends the run, and waits for it.
func (s *Stream) Halt() {
	if run := s.Current(); run != nil {
		run.Halt()
	}
}

// excused notes why the position may be older than the server remembers, "" for no reason.
func (s *Stream) excused(why delta.Cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.excuse = why
}

func (s *Stream) excuseOf() delta.Cause {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.excuse
}

// FIFOOptions are those of each FIFO that feeds the stream.
func (s *Stream) FIFOOptions() deltafifo.FIFOOptions {
	return deltafifo.FIFOOptions{Stream: s, Name: s.Name(), KnownObjects: s.record.Known(), Rules: s.decisions.rules.String()}
}

// runOptions are those of the FIFO of a run.
func (s *Stream) runOptions(served kube.Resource) deltafifo.FIFOOptions {
	o := s.FIFOOptions()
	o.Name = served.String()
	o.Attach, o.Detach = s.decisions.exclusions.attach, s.decisions.exclusions.detach
	o.Transformer = canonical.Transformer(s.redaction)
	return o
}

// ListDue says why the next run begins with a list.
func (s *Stream) ListDue(reason lifecycle.Reason) { s.standing.ended, s.standing.due = "", reason }
