package recorder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// batchBytes bounds what one transaction takes: beyond it latency grows and throughput does not.
const batchBytes = 16 << 20

// sink is what the pump needs of one: rows are made in order, and committed in the same order.
type sink interface {
	Encode([]postgres.Item) (*postgres.Batch, error)
	Commit(context.Context, *postgres.Batch) error
}

// pump moves what the queue holds into the sink. An entry leaves the queue only when its transaction is committed (I1):
// encoding runs one batch ahead, on a goroutine of its own.
type pump struct {
	queue  *deltafifo.Queue
	sink   sink
	rows   int
	linger time.Duration
	// offset gives the spool's offset after the oldest entries.
	offset func(entries int) postgres.Offset
	// committed is told of each batch, after it.
	committed func(entries []deltafifo.Entry)
}

type encoded struct {
	entries []deltafifo.Entry
	batch   *postgres.Batch
}

// run ends without error when the queue is closed and everything in it is committed.
func (p *pump) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	batches := make(chan encoded)
	g.Go(func() error {
		defer close(batches)
		return p.encode(ctx, batches)
	})
	g.Go(func() error { return p.commit(ctx, batches) })
	return g.Wait()
}

func (p *pump) encode(ctx context.Context, batches chan<- encoded) error {
	for {
		entries, err := p.queue.Next(ctx, p.rows, batchBytes, p.linger)
		if errors.Is(err, cache.ErrFIFOClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		items, err := stream.Items(entries)
		if err != nil {
			return err
		}
		batch, err := p.sink.Encode(items)
		if err != nil {
			return fmt.Errorf("encode %d deltas: %w", len(items), err)
		}
		select {
		case batches <- encoded{entries, batch}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (p *pump) commit(ctx context.Context, batches <-chan encoded) error {
	for b := range batches {
		b.batch.SetOffset(p.offset(len(b.entries))) // I7
		if err := p.sink.Commit(ctx, b.batch); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		p.queue.Done(len(b.entries))
		p.committed(b.entries)
	}
	return nil
}
