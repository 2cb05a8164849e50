package history

import (
	"context"
	"iter"
	"time"
)

// Deltas yields deltas in the order of seq, up to the end of the record at the start of the reading. A damaged delta comes
// with a *DamagedError. A day whose partition is gone comes as a *MissingDayError. After both it continues if the caller
// does.
func (r *Record) Deltas(ctx context.Context, q Query) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		g, err := newDeltaReader(ctx, r.view, q)
		if err != nil {
			yield(Delta{}, err)
			return
		}
		g.deltas(ctx, yield)
	}
}

func (g *deltaReader) deltas(ctx context.Context, yield func(Delta, error) bool) bool {
	for batch, err := range g.batches(ctx) {
		if err != nil {
			if !yield(Delta{}, err) {
				return false
			}
			continue
		}
		for i := range batch {
			stream, err := g.view.stream(ctx, batch[i].Stream)
			if err != nil {
				yield(Delta{}, err)
				return false
			}
			d, err := batch[i].delta(stream)
			if err != nil {
				err = batch[i].damaged(stream, d.Seq, err)
			}
			if !yield(d, err) {
				return false
			}
		}
	}
	return true
}

// followEvery is the interval at which follow reads the head of the record.
const followEvery = time.Second

// Follow yields what Deltas yields, and then waits for more. It ends with ctx, without an error, or with the Query.
func (r *Record) Follow(ctx context.Context, q Query) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		yield = unlessDone(ctx, yield)
		err := follow(ctx, r.view, q, func(g *deltaReader) bool { return g.deltas(ctx, yield) })
		if err != nil {
			yield(Delta{}, err)
		}
	}
}

// unlessDone ends an iteration whose context has ended. It does not yield that as an error.
func unlessDone[T any](ctx context.Context, yield func(T, error) bool) func(T, error) bool {
	return func(t T, err error) bool {
		if err != nil && ctx.Err() != nil {
			return false
		}
		return yield(t, err)
	}
}

// follow reads again whenever the head has moved. It resolves the query again, because new lives of the requested name may
// have begun.
func follow(ctx context.Context, v *view, q Query, read func(*deltaReader) bool) error {
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for seen := int64(-1); ; {
		head, err := v.extent(ctx)
		if err != nil {
			return err
		}
		if head.LastSeq > seen {
			g, err := newDeltaReader(ctx, v, q)
			if err != nil || !read(g) {
				return err
			}
			seen, q.FromSeq = g.head, max(q.FromSeq, g.head+1)
		}
		if q.ToSeq != 0 && q.ToSeq <= seen || !q.To.IsZero() && q.To.Before(head.LastAt) {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}
