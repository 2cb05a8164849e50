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

// Stream is one resource in the record. It lasts as long as the process. The resource may be served in another version,
// vanish and come back: each time with another Run.
type Stream struct {
	resource       kube.Resource // the name of the stream in the spool
	recorded       *postgres.Stream
	redaction      *redact.Resource // nil if nothing is hidden
	rollbackStream *rollback.Stream
	counters       counters
	decisions      decisions
	dating         dating
	standing       standing
	newest         []string // the newest revisions on record, until the first run
	// leftover is the part of the stream that an earlier recorder left in the spool; nil if there is none.
	leftover *spooling.Leftover
	started  started

	mu  sync.Mutex // protects the fields below
	run *Run
	// expiryCause is why the position may be older than the server's history. It is empty once the stream has gone on
	// from there.
	expiryCause delta.Cause
}

// standing is the state of a stream between its runs. The current run owns it. If there is none, End owns it. A new
// owner begins when the previous one has ended.
type standing struct {
	// listedUnder are the rules of the last list that was completed, whether it is recorded, in the spool or queued.
	listedUnder string
	// interrupted is the last reported cause for which the stream cannot be followed; empty if it can.
	interrupted delta.Cause
	// ended is a resource version at which no object was left, because the definition of the resource was deleted. It
	// is empty while there is a run.
	ended string
	// due is why a list is due. The list completes an earlier one that may be recorded in part, or it is the first
	// under another definition.
	due lifecycle.Reason
}

// started is closed when the stream follows the server for the first time, or has reported why it cannot.
type started struct {
	once   sync.Once
	closed chan struct{}
}

func (s *started) mark() { s.once.Do(func() { close(s.closed) }) }

// Started returns a channel that is closed when the stream follows the server for the first time, or has reported why
// it cannot.
func (s *Stream) Started() <-chan struct{} { return s.started.closed }

// Name implements schemacheck.Stream, spooling.Stream and sweep.Stream.
func (s *Stream) Name() string { return s.resource.String() }

// Resource implements spooling.Stream.
func (s *Stream) Resource() kube.Resource { return s.resource }

// Redaction implements spooling.Stream.
func (s *Stream) Redaction() *redact.Resource { return s.redaction }

// Recorded implements spooling.Stream.
func (s *Stream) Recorded() *postgres.Stream { return s.recorded }

// Known implements sweep.Stream.
func (s *Stream) Known() cache.KeyListerGetter { return s.recorded.Known() }

// Schema implements schemacheck.Stream.
func (s *Stream) Schema() string { return s.recorded.Schema() }

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

// Decided returns the decisions on record.
func (s *Stream) Decided() map[types.UID]bool {
	lives := map[types.UID]bool{}
	for _, uid := range s.recorded.ExcludedUIDs() {
		lives[uid] = false
	}
	for _, key := range s.recorded.Known().ListKeys() {
		known, ok, _ := s.recorded.Known().GetByKey(key)
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

// Current returns the newest run, nil if there was none. It may have ended.
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

// setExpiryCause notes why the position may be older than the server's history, "" for no reason.
func (s *Stream) setExpiryCause(why delta.Cause) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expiryCause = why
}

func (s *Stream) knownExpiryCause() delta.Cause {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expiryCause
}

// FIFOOptions returns the options of each FIFO that feeds the stream.
func (s *Stream) FIFOOptions() deltafifo.FIFOOptions {
	return deltafifo.FIFOOptions{Stream: s, Name: s.Name(), KnownObjects: s.recorded.Known(), Rules: s.decisions.rules.String()}
}

// runOptions returns the options of a run's FIFO.
func (s *Stream) runOptions(served kube.Resource) deltafifo.FIFOOptions {
	o := s.FIFOOptions()
	o.Name = served.String()
	o.Attach, o.Detach = s.decisions.exclusions.attach, s.decisions.exclusions.detach
	o.Transformer = canonical.Transformer(s.redaction)
	return o
}

// ListDue makes the next run begin with a list, for a reason.
func (s *Stream) ListDue(reason lifecycle.Reason) { s.standing.ended, s.standing.due = "", reason }
