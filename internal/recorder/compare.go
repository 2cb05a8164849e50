package recorder

import (
	"time"

	"github.com/kuberewind/kuberewind/internal/schemacheck"
	"github.com/kuberewind/kuberewind/internal/stream"
)

func (r *Recorder) newComparer() *schemacheck.Comparer {
	streams := func() []schemacheck.Stream { return stream.As[schemacheck.Stream](r.streams.All()) }
	return &schemacheck.Comparer{Streams: streams, Schemas: r.schemas, Compare: r.launcher.Compare, Now: time.Now, Log: r.env.log}
}
