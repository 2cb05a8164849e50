package stream

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/rollback"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Record is the part of the record that a Set needs.
type Record interface {
	Info() postgres.Info
	Stream(context.Context, postgres.StreamSpec) (*postgres.Stream, error)
	StartAfter(time.Time) // makes the record go on after a time
}

// Options configures a Set.
type Options struct {
	Record          Record
	Rules           *filter.Filter
	Before          *filter.Filter // the rules of the previous recorder, nil if they are not known
	Redactor        *redact.Redactor
	RollbackStreams *rollback.Streams
	Schemas         interface{ Of(kube.Resource) string }
	Metrics         *telemetry.Metrics
	// The following maps hold state that the previous recorder left on record, by stream. PastRollbacks has the
	// rollbacks that a stream may not have been notified of. Unverified has the versions that were recorded last.
	// Newest has the newest revisions.
	PastRollbacks map[int32][]postgres.Reversal
	Unverified    map[int32][]postgres.Version
	Newest        map[int32][]string
}

// Set holds the open streams. A resource has one stream as long as the process lives, because its spooled entries name
// the resource.
type Set struct {
	options Options
	corrupt func() bool // reports whether a part of a spool could not be read; nil before there is one

	opening sync.Mutex // held while a stream is opened, before mu
	mu      sync.Mutex // protects streams
	streams map[schema.GroupResource]*Stream
}

// NewSet returns a Set without open streams.
func NewSet(o Options) *Set { return &Set{options: o, streams: map[schema.GroupResource]*Stream{}} }

// Open returns the stream of a resource, and opens it if it is not open. Since is a resource version before which the
// resource had no objects, or empty.
func (s *Set) Open(ctx context.Context, resource kube.Resource, since string) (st *Stream, opened bool, err error) {
	if st = s.Get(resource); st != nil {
		return st, false, nil
	}
	s.opening.Lock()
	defer s.opening.Unlock()
	if st = s.Get(resource); st != nil {
		return st, false, nil
	}
	if st, err = s.open(ctx, resource, since); err != nil {
		return nil, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams[resource.GroupResource()] = st
	return st, true, nil
}

// OpenDormant opens the stream of a resource that is on record, without following it.
func (s *Set) OpenDormant(ctx context.Context, resource kube.Resource) error {
	_, _, err := s.Open(ctx, resource, "")
	return err
}

// open registers the resource in the record and loads its part of the record.
func (s *Set) open(ctx context.Context, resource kube.Resource, since string) (*Stream, error) {
	recorded, err := s.Register(ctx, resource, since)
	if err != nil {
		return nil, err
	}
	o, id, redaction := s.options, recorded.ID(), s.options.Redactor.For(resource.GroupResource())
	st := &Stream{
		resource: resource, recorded: recorded, redaction: redaction, newest: o.Newest[id],
		decisions:      decisions{stream: id, rules: o.Rules.For(resource.GroupResource())},
		counters:       newCounters(o.Metrics, resource.GroupResource()),
		rollbackStream: o.RollbackStreams.Add(rollback.Spec{Name: resource.String(), ID: id, Namespaced: resource.Namespaced, Canonical: canonical.Transformer(redaction)}),
		started:        started{closed: make(chan struct{})},
		standing:       standing{listedUnder: recorded.Filter()},
		expiryCause:    s.expiryCause(resource.GroupResource()),
	}
	delete(o.Newest, id) // The revisions can be many, and the stream has them now.
	st.rollbackStream.Recall(rollback.Recalled{PastRollbacks: o.PastRollbacks[id], Unverified: o.Unverified[id]})
	info := o.Record.Info()
	st.dating.since = info.Started
	if info.Resumed && recorded.Position() != "" {
		st.dating.live.resume(info.Observed, info.Started)
	}
	return st, nil
}

// Register notes in the record which version of the resource is followed now.
func (s *Set) Register(ctx context.Context, resource kube.Resource, since string) (*postgres.Stream, error) {
	gr := resource.GroupResource()
	return s.options.Record.Stream(ctx, postgres.StreamSpec{
		Group: resource.Group, Resource: resource.Name, Version: resource.Version, Kind: resource.Kind,
		Namespaced: resource.Namespaced, Filter: s.options.Rules.For(gr).String(), Schema: s.options.Schemas.Of(resource), StartRV: since,
		Redact: canonical.Restorer(s.options.Redactor.For(gr)),
	})
}

// expiryCause returns why the record's position in a stream may be older than the server's history. It returns "" if
// only a pause of the recorder can be the reason.
func (s *Set) expiryCause(gr schema.GroupResource) delta.Cause {
	switch {
	case s.options.Before != nil && !s.options.Before.Resource(gr):
		return delta.CauseConfiguration
	case s.corrupt != nil && s.corrupt():
		return delta.CauseSpoolCorrupt
	}
	return ""
}

// Get returns the stream of a resource, nil if it is not open.
func (s *Set) Get(resource kube.Resource) *Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[resource.GroupResource()]
}

// All returns the open streams.
func (s *Set) All() []*Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	streams := make([]*Stream, 0, len(s.streams))
	for _, st := range s.streams {
		streams = append(streams, st)
	}
	return streams
}

// As returns the streams as the interface that another package needs.
func As[T any](streams []*Stream) []T {
	all := make([]T, len(streams))
	for i, s := range streams {
		all[i] = any(s).(T)
	}
	return all
}

// Halt stops all streams at once and waits for them.
func (s *Set) Halt() {
	var all sync.WaitGroup
	for _, st := range s.All() {
		all.Go(st.Halt)
	}
	all.Wait()
}

// Interruptions returns the streams whose history no longer exists, in the form in which the queue opens their gaps (I3).
func (s *Set) Interruptions(gaps []rollback.Gap) []deltafifo.Interruption {
	of := map[*rollback.Stream]*Stream{}
	for _, st := range s.All() {
		of[st.rollbackStream] = st
	}
	var interruptions []deltafifo.Interruption
	for _, g := range gaps {
		if st := of[g.Stream]; st != nil {
			interruptions = append(interruptions, deltafifo.Interruption{Stream: st, Begin: g.Begin})
		}
	}
	return interruptions
}
