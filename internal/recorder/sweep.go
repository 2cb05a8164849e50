package recorder

import (
	"context"

	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/sweep"
)

func (r *Recorder) newSweeper() *sweep.Sweeper {
	streams := func() []sweep.Stream { return stream.As[sweep.Stream](r.streams.All()) }
	return &sweep.Sweeper{Sink: r.sink, Queue: r.queue, Now: r.clock.Now, Streams: streams, Open: r.streams.OpenDormant, Opened: r.progress.allOpen, Log: r.env.log}
}

// sweep runs the sweeper. It waits first until each stream that discovery found at the start has started.
func (r *Recorder) sweep(ctx context.Context) error {
	select {
	case <-r.progress.recording:
		return r.newSweeper().Run(ctx)
	case <-ctx.Done():
		return nil
	}
}
