package recorder

import (
	"context"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/internal/sweep"
)

// Known implements sweep.Stream.
func (s *stream) Known() cache.KeyListerGetter { return s.record.Known() }

func (r *Recorder) newSweeper() *sweep.Sweeper {
	streams := func() []sweep.Stream { return streamsAs[sweep.Stream](r.snapshot()) }
	return &sweep.Sweeper{Sink: r.sink, Queue: r.queue, Now: r.now, Streams: streams, Open: r.openDormant, Opened: r.allOpen, Log: r.log}
}

// sweep runs the sweeper when the API server has said which streams are followed, and in which version.
func (r *Recorder) sweep(ctx context.Context) error {
	select {
	case <-r.recording:
		return r.newSweeper().Run(ctx)
	case <-ctx.Done():
		return nil
	}
}
