package marks

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/history"
)

// These are the sizes of slices, in seqs. A slice doubles while it takes little time, and halves if it takes much. The
// first slice is smaller if objects must be folded.
const (
	firstSlice = 1_000
	firstFolds = 100
	mostSlice  = 1 << 20
	littleTime = 25 * time.Millisecond
	muchTime   = 70 * time.Millisecond
)

// Back reads the marks between two seqs, both included, slice by slice from the last. It calls give with each slice in
// order of seq. It stops when patience is spent, but not before the first slice. left is the last seq that it did not read;
// it is below first if it read all.
func (g *Reading) Back(ctx context.Context, first, last int64, patience time.Duration, give func([]Mark)) (left int64, err error) {
	return g.While(ctx, first, last, patience, func(found []Mark) bool {
		give(found)
		return true
	})
}

// Again is Back for an answer that repeats everything. It first reads from last to low, which an earlier answer read,
// without a limit. Then it continues for twice as long as that took, and at least for the patience. So the time of all
// answers together is a few times the time of one.
func (g *Reading) Again(ctx context.Context, first, low, last int64, patience time.Duration, give func([]Mark)) (left int64, err error) {
	began := time.Now()
	if _, err := g.Back(ctx, low, last, math.MaxInt64, give); err != nil {
		return 0, err
	}
	return g.Back(ctx, first, low-1, max(patience, 2*time.Since(began)), give)
}

// While is Back, but stops when give returns false.
func (g *Reading) While(ctx context.Context, first, last int64, patience time.Duration, give func([]Mark) bool) (left int64, err error) {
	began, size := time.Now(), int64(firstSlice)
	if g.filter.Labels != nil {
		size = firstFolds
	}
	for left = last; left >= first; {
		sliceBegan := time.Now()
		from := max(first, left-size+1)
		found, next, err := g.slice(ctx, from, left)
		if err != nil {
			return left, err
		}
		left = next
		if !give(found) {
			return left, nil
		}
		now := time.Now()
		switch took := now.Sub(sliceBegan); {
		case now.Sub(began) >= patience:
			return left, nil
		case took < littleTime:
			size = min(2*size, mostSlice)
		case took > muchTime:
			size = max(size/2, 1)
		}
	}
	return left, nil
}

// slice reads one slice. If the partition of a day in it is gone, slice notes the day and reads only the rows after it. The
// next slice then begins before the day.
func (g *Reading) slice(ctx context.Context, from, to int64) (found []Mark, left int64, err error) {
	found, err = g.Read(ctx, from, to)
	var missing *history.MissingDayError
	if !errors.As(err, &missing) || missing.LastSeq < from {
		return found, from - 1, err
	}
	g.lost(missing)
	if missing.LastSeq >= to {
		return nil, missing.FirstSeq - 1, nil
	}
	found, left, err = g.slice(ctx, missing.LastSeq+1, to)
	if left == missing.LastSeq {
		left = missing.FirstSeq - 1
	}
	return found, left, err
}

// lost notes a day whose partition is gone.
func (g *Reading) lost(missing *history.MissingDayError) {
	if !slices.ContainsFunc(g.Missing, func(m *history.MissingDayError) bool { return m.Day.Equal(missing.Day) }) {
		g.Missing = append(g.Missing, missing)
	}
}
