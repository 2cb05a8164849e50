package recorder

import (
	"context"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/internal/schemacheck"
	"github.com/kuberewind/kuberewind/kube"
)

// Schema implements schemacheck.Stream.
func (s *stream) Schema() string { return s.record.Schema() }

// Serving implements schemacheck.Stream.
func (s *stream) Serving() (resource kube.Resource, ok bool) {
	run := s.current()
	if run == nil || run.listing.Load() {
		return kube.Resource{}, false
	}
	return run.served, true
}

func (r *Recorder) newComparer() *schemacheck.Comparer {
	streams := func() []schemacheck.Stream { return streamsAs[schemacheck.Stream](r.snapshot()) }
	return &schemacheck.Comparer{Streams: streams, Schemas: r.schemas, Compare: r.compareStream, Now: time.Now, Log: r.log}
}

// compareStream has a FIFO of its own, as the sweep has: that of the run may be closed meanwhile.
func (r *Recorder) compareStream(ctx context.Context, of schemacheck.Stream, resource kube.Resource, schema string) (different int, err error) {
	release, err := r.gate.acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer release()
	s := of.(*stream)
	fifo := r.queue.FIFO(deltafifo.FIFOOptions{
		Stream: s, Name: s.name, KnownObjects: s.record.Known(), Transformer: canonical.Transformer(s.redaction),
	})
	defer fifo.Close()
	stop := context.AfterFunc(ctx, fifo.Close)
	defer stop()
	different, err = schemacheck.Pages(ctx, r.client.ListWatch(resource, ""), fifo.Tail().Compare)
	if err != nil || schema == "" {
		return different, err
	}
	return different, fifo.Tail().Compared(schema)
}

// streamsAs gives the streams as what a room needs of them.
func streamsAs[T any](streams []*stream) []T {
	all := make([]T, len(streams))
	for i, s := range streams {
		all[i] = any(s).(T)
	}
	return all
}
