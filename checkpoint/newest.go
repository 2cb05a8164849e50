package checkpoint

import (
	"context"
	"errors"
)

// tailPerObject, together with leastDeltas, bounds the tail that a rebuild reads to use a checkpoint. Folding an object
// from its deltas alone costs as much as reading five to nine rows of a tail. (See go test ./history -run '^$' -bench
// Rebuild; in the records of ./bench it is five.)
const tailPerObject = 5

// leastDeltas is an interval whose tail takes at most 0.6 s of CPU, however few the objects are. At 10,000, checkpoints
// were a fifth of the record of a small cluster.
const leastDeltas = 20_000

// Interval returns the number of deltas between two checkpoints for a number of living objects. It is one and a half times
// their number, and at least 20,000.
//
// It balances the cost of checkpoints against the time of a rebuild. A rebuild takes some 10 µs of CPU for an object of the
// checkpoint, and 30 for a delta after it. On average three deltas for every four objects follow the checkpoint.
//
// For each delta, checkpoints add at most two thirds of the bytes of one object in a checkpoint. (See make bench, which
// also compares half and twice the interval.) Making them takes CPU in the same proportion. Unchanged blocks cost next to
// nothing.
func Interval(live int64) int64 { return max(leastDeltas, live*3/2) }

// A Want says for which rebuild to open a checkpoint.
type Want struct {
	UpTo  int64 // the checkpoint has this seq or a lower one
	First int64 // first seq of the record's deltas
	Last  int64 // last seq of the deltas to read after it
	Scope Scope
	// Unusable is called with each checkpoint that Newest skips because it is damaged. It must be set.
	Unusable func(Info, error)
}

// Newest opens the newest usable checkpoint. It returns nil if a rebuild from the deltas alone is better.
func (s Store) Newest(ctx context.Context, w Want) (*Saved, error) {
	for {
		infos, err := s.List(ctx, w.UpTo, 1)
		if err != nil || len(infos) == 0 {
			return nil, err
		}
		info := infos[0]
		if info.Seq < w.First-1 {
			return nil, nil // The deltas after it were dropped in part. An older checkpoint is no better.
		}
		if w.Last-info.Seq > tailPerObject*info.Objects+leastDeltas {
			return nil, nil
		}
		w.UpTo = info.Seq - 1
		found, err := s.Open(ctx, info, w.Scope)
		if err == nil || !errors.Is(err, ErrUnusable) {
			return found, err
		}
		w.Unusable(info, err)
	}
}
