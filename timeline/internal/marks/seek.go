package marks

import (
	"context"
	"slices"
	"time"
)

// Last returns the last mark between two seqs, both included, or nil. If it runs out of time, left is the last seq that it
// did not read. Otherwise left is below first.
func (g *Reading) Last(ctx context.Context, first, last int64, patience time.Duration) (m *Mark, left int64, err error) {
	left, err = g.While(ctx, first, last, patience, func(found []Mark) bool {
		if len(found) == 0 {
			return true
		}
		m = &found[len(found)-1]
		return false
	})
	return m, left, err
}

// First returns the first mark between two seqs, both included, or nil. If it runs out of time, left is the first seq that
// it did not read. Otherwise left is above last.
func (g *Reading) First(ctx context.Context, first, last int64, patience time.Duration) (m *Mark, left int64, err error) {
	began, size := time.Now(), int64(firstSlice)
	for left = first; left <= last; left, size = left+size, min(2*size, mostSlice) {
		if left > first && time.Since(began) >= patience {
			return nil, left, nil
		}
		// Skip a missing day, from its end.
		for to := min(left+size-1, last); to >= left; {
			found, next, err := g.slice(ctx, left, to)
			if err != nil {
				return nil, left, err
			}
			if len(found) > 0 {
				m = &found[0]
			}
			to = next
		}
		if m != nil {
			return m, last + 1, nil
		}
	}
	return nil, left, nil
}

// Newest returns the newest marks between two seqs, newest first: `most` of them, or fewer. left is as for Last: there may be more.
func (g *Reading) Newest(ctx context.Context, first, last int64, most int, patience time.Duration) (all []Mark, left int64, err error) {
	left, err = g.While(ctx, first, last, patience, func(found []Mark) bool {
		slices.Reverse(found)
		all = append(all, found...)
		return len(all) < most
	})
	if len(all) > most {
		left, all = all[most].Seq, all[:most]
	}
	return all, left, err
}
