package recorder

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/kube"
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
		items, err := itemsOf(entries)
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

// itemsOf says to the sink, in its words, what the entries are.
func itemsOf(entries []deltafifo.Entry) ([]postgres.Item, error) {
	items := make([]postgres.Item, 0, len(entries))
	for i := range entries {
		st, ok := entries[i].Stream.(*stream)
		if !ok {
			return nil, fmt.Errorf("an entry of the queue belongs to no stream but to a %T", entries[i].Stream)
		}
		decisions, _ := entries[i].Attached.([]postgres.Item)
		for _, decided := range decisions {
			// Without a time of its own it would be dated now, and all that waits behind it with it.
			decided.Observed = entries[i].Observed
			items = append(items, decided)
		}
		item, err := st.item(&entries[i])
		if err != nil {
			return nil, err
		}
		items = append(items, item)
		for _, b := range entries[i].Beside {
			other, ok := b.Stream.(*stream)
			if !ok {
				return nil, fmt.Errorf("an entry of the queue is about no stream but about a %T", b.Stream)
			}
			m := *entries[i].Marker
			m.FromRV, m.FromTime = b.FromRV, b.FromTime
			item, err := other.item(&deltafifo.Entry{Observed: entries[i].Observed, Marker: &m})
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
	}
	return items, nil
}

// known is an object of the record that is stored again: a postgres.KnownObject, or a keyframe.
type known interface {
	postgres.Object
	Version() string
}

// item is called by the encoder only, which owns the stream's occurrence.
func (s *stream) item(e *deltafifo.Entry) (postgres.Item, error) {
	item := postgres.Item{Stream: s.record.ID(), Observed: e.Observed, Position: e.Position}
	occurrence := &s.occurrence
	if e.Observed.Before(s.since) {
		occurrence = &s.spooledOccurrence // A recorder before this one saw it live.
	}
	if e.Marker != nil {
		s.mark(&item, e.Marker, occurrence)
		return item, nil
	}
	if e.Bookmark() {
		if e.Source == "" {
			occurrence.live()
		}
		item.Kind, item.Source = postgres.Position, e.Source
		return item, nil
	}
	item.Kind, item.Type, item.Source = postgres.Delta, e.Delta.Type, e.Source
	switch obj := e.Delta.Object.(type) {
	case *kube.Object:
		item.Object, item.Version = obj, obj.GroupVersionKind().Version
		evidence, ok := obj.EvidenceTime()
		// What is deleted without grace says only what happened to it before.
		ok = ok && (e.Delta.Type != delta.Deleted || obj.DeletionTimestamp != nil)
		item.Occurred = occurrence.at(s.watchedSince(e.Observed), e.Observed, evidence, ok)
	case cache.DeletedFinalStateUnknown:
		item.Key, item.RV = obj.Key, e.ListRV
		if last, ok := obj.Obj.(interface{ GetUID() types.UID }); ok {
			item.UID = last.GetUID()
		}
		item.Occurred = occurrence.at(s.watchedSince(e.Observed), e.Observed, time.Time{}, false)
	case known:
		item.Object, item.Version = obj, obj.Version()
	default:
		return postgres.Item{}, fmt.Errorf("stream %s: a delta of %T cannot be recorded", s.name, obj)
	}
	return item, nil
}

func (s *stream) mark(item *postgres.Item, m *delta.Marker, occurrence *occurrence) {
	item.Kind, item.Marker = postgres.Marked, *m
	switch {
	case m.Kind == delta.Replaced:
		occurrence.live()
	case m.Kind == delta.Interrupted && m.Cause == delta.CauseHistoryReversed:
		occurrence.reversed()
	}
}
