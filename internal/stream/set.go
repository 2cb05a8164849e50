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

// Record is what a Set needs of the record.
type Record interface {
	Info() postgres.Info
	Stream(context.Context, postgres.StreamSpec) (*postgres.Stream, error)
	StartAfter(time.Time) // has the record go on after a time
}

// Options say what a Set works with.
type Options struct {
	Record   Record
	Rules    *filter.Filter
	Before   *filter.Filter // the rules of the recorder before, nil if they are not known
	Redactor *redact.Redactor
	Etcds    *rollback.Streams
	Schemas  interface{ Of(kube.Resource) string }
	Metrics  *telemetry.Metrics
	// What the recorder before has left on record, by stream: reversals that it may not have told all streams of, the versions that
	// it recorded last, and the newest revisions.
	Untold   map[int32][]postgres.Reversal
	Unproven map[int32][]postgres.Version
	Newest   map[int32][]string
}

// Set are the streams that are open. A resource has one stream as long as the process lives, because what is spooled of it comes back
// under the resource's name.
type Set struct {
	options Options
	corrupt func() bool // says that a spool could not all be read; nil before there is one

	opening sync.Mutex // held while a stream is opened, before mu
	mu      sync.Mutex // protects streams
	streams map[schema.GroupResource]*Stream
}

// NewSet has no stream open.
func NewSet(o Options) *Set { return &Set{options: o, streams: map[schema.GroupResource]*Stream{}} }

// Open gives the stream of a resource, and opens it if it is not open. Since is a resource version before which the resource had no
// objects, or empty.
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

// OpenDormant opens the stream of a resource that is on record, and that nothing is followed for.
func (s *Set) OpenDormant(ctx context.Context, resource kube.Resource) error {
	_, _, err := s.Open(ctx, resource, "")
	return err
}

// open registers the resource in the record and loads what the record holds of it.
func (s *Set) open(ctx context.Context, resource kube.Resource, since string) (*Stream, error) {
	record, err := s.Register(ctx, resource, since)
	if err != nil {
		return nil, err
	}
	o, id, redaction := s.options, record.ID(), s.options.Redactor.For(resource.GroupResource())
	st := &Stream{
		resource: resource, record: record, redaction: redaction, newest: o.Newest[id],
		decisions: decisions{stream: id, rules: o.Rules.For(resource.GroupResource())},
		counters:  newCounters(o.Metrics, resource.GroupResource()),
		etcd:      o.Etcds.Add(rollback.Spec{Name: resource.String(), Record: id, Namespaced: resource.Namespaced, Canonical: canonical.Transformer(redaction)}),
		settled:   settled{closed: make(chan struct{})},
		standing:  standing{listedUnder: record.Filter()},
		excuse:    s.excuse(resource.GroupResource()),
	}
	delete(o.Newest, id) // They can be many, and are the stream's now.
	st.etcd.Recall(rollback.Recalled{Reversals: o.Untold[id], Unverified: o.Unproven[id]})
	info := o.Record.Info()
	st.dating.since = info.Started
	if info.Resumed && record.Position() != "" {
		st.dating.live.resume(info.Observed, info.Started)
	}
	return st, nil
}

// Register says to the record which version of the resource is followed now.
func (s *Set) Register(ctx context.Context, resource kube.Resource, since string) (*postgres.Stream, error) {
	gr := resource.GroupResource()
	return s.options.Record.Stream(ctx, postgres.StreamSpec{
		Group: resource.Group, Resource: resource.Name, Version: resource.Version, Kind: resource.Kind,
		Namespaced: resource.Namespaced, Filter: s.options.Rules.For(gr).String(), Schema: s.options.Schemas.Of(resource), StartRV: since,
		Redact: canonical.Restorer(s.options.Redactor.For(gr)),
	})
}

// excuse is why the record's position in a stream may be older than the server remembers, if that is more than a pause of the recorder.
func (s *Set) excuse(gr schema.GroupResource) delta.Cause {
	switch {
	case s.options.Before != nil && !s.options.Before.Resource(gr):
		return delta.CauseConfiguration
	case s.corrupt != nil && s.corrupt():
		return delta.CauseSpoolCorrupt
	}
	return ""
}

// Get gives the stream of a resource, nil if it is not open.
func (s *Set) Get(resource kube.Resource) *Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.streams[resource.GroupResource()]
}

// All gives the streams that are open.
func (s *Set) All() []*Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	streams := make([]*Stream, 0, len(s.streams))
	for _, st := range s.streams {
		streams = append(streams, st)
	}
	return streams
}

// As gives the streams as what another package needs of them.
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

// Late are the streams whose history is no more, as the queue opens their gaps (I3).
func (s *Set) Late(gaps []rollback.Gap) []deltafifo.Late {
	of := map[*rollback.Stream]*Stream{}
	for _, st := range s.All() {
		of[st.etcd] = st
	}
	var late []deltafifo.Late
	for _, g := range gaps {
		if st := of[g.Stream]; st != nil {
			late = append(late, deltafifo.Late{Stream: st, Begin: g.Begin})
		}
	}
	return late
}
