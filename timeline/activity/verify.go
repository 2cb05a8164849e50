package activity

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
)

// A Finding is a count that differs from the deltas, or a row that no recorder writes.
type Finding struct {
	FirstSeq, LastSeq int64 // of the row
	Text              string
}

// Verified says what Verify compared.
type Verified struct {
	Blocks, Deltas int64 // counted ahead, and compared
	Other          int64 // deltas counted by another version of the classifier; these counts are not used
	Missing        int64 // deltas that are not counted ahead
}

// VerifyOptions are the options of Verify.
type VerifyOptions struct {
	Progress func(history.Progress) // nil discards it
}

// Verify counts each block again from the deltas, and calls found with each difference. It reads all patches once. A block
// bounds its memory.
func Verify(ctx context.Context, rec *history.Record, o VerifyOptions, found func(Finding)) (v Verified, err error) {
	if err := strays(ctx, rec, found); err != nil {
		return v, err
	}
	days, err := rec.Days().List(ctx, 0, math.MaxInt64)
	if err != nil {
		return v, err
	}
	if days, err = present(ctx, rec, days); err != nil {
		return v, err
	}
	total := int64(0)
	for _, d := range days {
		total += d.LastSeq - d.FirstSeq + 1
	}
	blocks, err := blocksOf(ctx, rec, days, 0, math.MaxInt64)
	if err != nil {
		return v, err
	}
	r := newBlockCounter(rec)
	streams, err := rec.Streams(ctx)
	if err != nil {
		return v, err
	}
	names := map[int32]string{}
	for i := range streams {
		names[streams[i].ID] = streams[i].String()
	}
	for _, b := range blocks {
		switch err := r.compare(ctx, b, names, found); {
		case errors.Is(err, ErrChanged):
			continue
		case err != nil:
			return v, err
		}
		v.Blocks++
		v.Deltas += b.Last - b.First + 1
		if o.Progress != nil {
			o.Progress(history.Progress{Stage: "deltas", Done: v.Deltas, Total: total})
		}
	}
	v.Missing = max(0, total-v.Deltas) // A recorder may have counted more meanwhile.
	err = rec.Pool().QueryRow(ctx, `
		SELECT coalesce(sum(last_seq - first_seq + 1), 0)::bigint FROM kuberewind.record_activity WHERE cluster = $1 AND width = $2 AND classifier <> $3`,
		rec.Cluster().Number, string(Minute), class.Version).Scan(&v.Other)
	return v, err
}

// strays finds rows that no counter writes: an incomplete set of widths, seqs of another day, and rows that overlap.
func strays(ctx context.Context, rec *history.Record, found func(Finding)) error {
	rows, err := rec.Pool().Query(ctx, `
		SELECT a.first_seq, a.last_seq, bool_and(a.first_seq <= a.last_seq AND a.first_seq >= d.first_seq AND a.last_seq <= d.last_seq),
			count(*) FILTER (WHERE a.width = ANY ($2::text[]))
		FROM kuberewind.record_activity a
		JOIN kuberewind.record_days d ON d.cluster = a.cluster AND d.day = a.day
		WHERE a.cluster = $1 GROUP BY a.day, a.first_seq, a.last_seq ORDER BY a.first_seq, a.last_seq`, rec.Cluster().Number, widthNames())
	if err != nil {
		return fmt.Errorf("read the counts: %w", err)
	}
	var first, last, n, before int64
	var within bool
	_, err = pgx.ForEachRow(rows, []any{&first, &last, &within, &n}, func() error {
		switch {
		case !within:
			found(Finding{first, last, "its day does not hold these seqs"})
		case first <= before:
			found(Finding{first, last, "its seqs are counted in another row, too"})
		case n != int64(rowsOfBlock):
			found(Finding{first, last, "a row of its counts by minute, by hour or by delta is missing"})
		}
		before = max(before, last)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read the counts: %w", err)
	}
	return nil
}

// widthNames returns the widths as the table has them.
func widthNames() (all []string) {
	for _, w := range widths {
		all = append(all, string(w.width))
	}
	return append(all, string(Delta))
}

// compare counts a block again. The error is ErrChanged if the block is gone meanwhile.
func (r *blockCounter) compare(ctx context.Context, b Block, names map[int32]string, found func(Finding)) error {
	right, err := r.count(ctx, span{b.day, b.First, b.Last})
	if errors.Is(err, errHoles) {
		found(Finding{b.First, b.Last, err.Error()})
		return nil
	}
	if err != nil {
		return fmt.Errorf("count the deltas from %d to %d: %w", b.First, b.Last, err)
	}
	for _, w := range widths {
		c, err := r.stored(ctx, b, w.width)
		if err != nil {
			return err
		}
		there, err := c.tallies()
		if err != nil {
			found(Finding{b.First, b.Last, fmt.Sprintf("by %s: %v", w.width, err)})
			continue
		}
		for k, text := range differences(there, right.minutes.by(w.long, w.together)) {
			found(Finding{b.First, b.Last, fmt.Sprintf("%s %s, %s%s", w.width, k.begin(), names[k.stream], text)})
		}
	}
	c, err := r.stored(ctx, b, Delta)
	if err != nil {
		return err
	}
	if text := right.sequence.firstDifference(c, b, names); text != "" {
		found(Finding{b.First, b.Last, "by delta: " + text})
	}
	return nil
}

func (r *blockCounter) stored(ctx context.Context, b Block, w Width) (*columns, error) {
	c := &columns{}
	err := r.record.Pool().QueryRow(ctx, `
		SELECT times, streams, namespaces, managers, classes, counts, first_seqs, last_seqs, deltas FROM kuberewind.record_activity
		WHERE cluster = $1 AND day = $2 AND first_seq = $3 AND last_seq = $4 AND width = $5 AND classifier = $6`,
		r.record.Cluster().Number, b.day, b.First, b.Last, string(w), class.Version).
		Scan(&c.times, &c.streams, &c.namespaces, &c.managers, &c.classes, &c.counts, &c.firstSeqs, &c.lastSeqs, &c.deltas)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, ErrChanged
	}
	return c, err
}

// differences yields each count that differs, in order, with a description.
func differences(there, right tallies) iter.Seq2[key, string] {
	keys := map[key]bool{}
	for _, all := range []tallies{there, right} {
		for k := range all {
			keys[k] = true
		}
	}
	return func(yield func(key, string) bool) {
		for _, k := range slices.SortedFunc(maps.Keys(keys), key.compare) {
			is, want := there[k], right[k]
			text := fmt.Sprintf("%d are on record as counted, and there are %d", is.n, want.n)
			if is.n == want.n {
				text = fmt.Sprintf("the seqs %d to %d are on record, and they are %d to %d", is.first, is.last, want.first, want.last)
			}
			if is != want && !yield(k, k.rest()+": "+text) {
				return
			}
		}
	}
}

// rest describes a kind without its resource.
func (k kind) rest() string {
	text := ", class " + string(k.class)
	if k.namespace != "" {
		text += ", namespace " + k.namespace
	}
	if k.manager != "" {
		text += ", manager " + k.manager
	}
	return text
}
