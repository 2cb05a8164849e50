// Package pump moves what the queue holds into the sink.
//
// # What it guarantees
//
//   - An entry leaves the queue only when its transaction is committed (I1).
//   - The transaction notes the spool's offset behind its entries (I7).
//   - Batches are committed in the order in which they were encoded.
//
// # Goroutines
//
// Run has two, and waits for both. One encodes, and runs one batch ahead. One commits.
package pump

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// batchBytes bounds what one transaction takes: beyond it latency grows and throughput does not.
const batchBytes = 16 << 20

// Sink is what the pump needs of one: rows are made in order, and committed in the same order.
type Sink interface {
	Encode([]postgres.Item) (*postgres.Batch, error)
	Commit(context.Context, *postgres.Batch) error
}

// Pump moves entries from a queue into a sink.
type Pump struct {
	Queue  *deltafifo.Queue
	Sink   Sink
	Rows   int           // at most, in one batch
	Linger time.Duration // for which Next lets entries wait for others
	// Items says to the sink, in its words, what entries are.
	Items func([]deltafifo.Entry) ([]postgres.Item, error)
	// Offset gives what is noted if this is the number of the first entry behind the batch.
	Offset func(next uint64) postgres.Offset
	// Verified is up to when what was observed was looked for in etcd, zero if that cannot be said with a batch that was observed
	// until then.
	Verified func(observed time.Time) time.Time
	// Committed is told of each batch, after it.
	Committed func([]deltafifo.Entry)
}

type encoded struct {
	entries []deltafifo.Entry
	batch   *postgres.Batch
}

// Run ends without error when the queue is closed and everything in it is committed.
func (p *Pump) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	batches := make(chan encoded)
	g.Go(func() error {
		defer close(batches)
		return p.encode(ctx, batches)
	})
	g.Go(func() error { return p.commit(ctx, batches) })
	return g.Wait()
}

func (p *Pump) encode(ctx context.Context, batches chan<- encoded) error {
	for {
		entries, err := p.Queue.Next(ctx, p.Rows, batchBytes, p.Linger)
		if errors.Is(err, cache.ErrFIFOClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		items, err := p.Items(entries)
		if err != nil {
			return err
		}
		batch, err := p.Sink.Encode(items)
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

func (p *Pump) commit(ctx context.Context, batches <-chan encoded) error {
	for b := range batches {
		b.batch.SetOffset(p.Offset(p.Queue.Offset(len(b.entries)))) // I7
		b.batch.SetVerified(p.Verified(b.entries[len(b.entries)-1].Observed))
		if err := p.Sink.Commit(ctx, b.batch); err != nil {
			return fmt.Errorf("commit: %w", err)
		}
		p.Queue.Done(len(b.entries))
		p.Committed(b.entries)
	}
	return nil
}
