package marks

import (
	"context"
	"errors"
	"slices"

	"github.com/kuberewind/kuberewind/history"
)

// At returns the deltas of some seqs, by seq, without their patches. It skips deltas of days whose partitions are gone.
func At(ctx context.Context, rec *history.Record, seqs []int64) (map[int64]history.Mark, error) {
	found := map[int64]history.Mark{}
	seqs = slices.Compact(slices.Sorted(slices.Values(seqs)))
	for len(seqs) > 0 {
		all, err := rec.Timeline().Marks(ctx, history.MarkQuery{Seqs: seqs, FromSeq: seqs[0], ToSeq: seqs[len(seqs)-1]})
		for _, m := range all {
			m.Patch = nil
			found[m.Seq] = m
		}
		var missing *history.MissingDayError
		if !errors.As(err, &missing) {
			return found, err
		}
		seqs = slices.DeleteFunc(seqs, func(n int64) bool { return n >= missing.FirstSeq && n <= missing.LastSeq })
	}
	return found, nil
}
