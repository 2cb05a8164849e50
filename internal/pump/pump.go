// Package pump moves what the queue holds into the sink.
//
// # What it guarantees
//
//   - The queue removes an entry only after its transaction is committed (I1).
//   - The transaction stores the spool's offset after its entries (I7).
//   - Batches are committed in the order in which they were encoded.
//
// # Goroutines
//
// Run has two goroutines, and waits for both. One encodes, and is one batch ahead of the commits. The other one
// commits.
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

// batchBytes bounds the bytes of one transaction: larger transactions have a higher latency and no higher throughput.
const batchBytes = 16 << 20

// Sink is the part of a sink that the pump needs: it makes rows in order, and commits them in the same order.
type Sink interface {
	Encode([]postgres.Item) (*postgres.Batch, error)
	Commit(context.Context, *postgres.Batch) error
}

// Pump moves entries from a queue into a sink.
type Pump struct {
	Queue  *deltafifo.Queue
	Sink   Sink
	Rows   int           // at most, in one batch
	Linger time.Duration // how long Next lets entries wait for others
	// Items returns the items that the sink stores for the entries.
	Items func([]deltafifo.Entry) ([]postgres.Item, error)
	// Offset returns the offset to store, given the number of the first entry after the batch.
	Offset func(next uint64) postgres.Offset
	// Verified returns the time up to which the recorder has checked the observed versions in etcd. The argument is the
	// time of the last entry of a batch. It returns zero if that batch cannot say so.
	Verified func(observed time.Time) time.Time
	// Committed is called after the commit of each batch.
	Committed func([]deltafifo.Entry)
}

type encoded struct {
	entries []deltafifo.Entry
	batch   *postgres.Batch
}

// Run returns nil when the queue is closed and everything in it is committed.
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
