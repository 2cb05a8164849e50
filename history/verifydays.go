package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// begin reads, in one state, the end of the record and its description of itself.
func (v *verification) begin(ctx context.Context) (days []day, partitions map[time.Time]bool, err error) {
	r := v.record
	err = pgx.BeginTxFunc(ctx, r.pool, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if v.extent, err = r.extent(ctx, tx); err != nil {
			return err
		}
		set, err := r.readStreams(ctx, tx)
		if err != nil {
			return err
		}
		v.streams = set.all
		gaps, err := r.gaps(ctx, tx, Scope{})
		if err != nil {
			return err
		}
		v.generation = make(map[int32]time.Time)
		for i := range gaps {
			if g := &gaps[i]; g.Cause == delta.CauseHistoryReversed && !g.ToAt.IsZero() {
				v.generation[g.Stream.ID] = g.ToAt
			}
		}
		if v.checkpoints, err = r.checkpoints(ctx, tx, v.extent.LastSeq, wholeSeq); err != nil {
			return err
		}
		slices.Reverse(v.checkpoints)
		if days, err = r.daysFrom(ctx, tx, 0, wholeSeq); err != nil {
			return err
		}
		if v.prunes, err = r.prunedDays(ctx, tx); err != nil {
			return err
		}
		partitions, err = v.partitions(ctx, tx)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	v.counts.Streams = int64(len(v.streams))
	return days, partitions, v.unlisted(ctx, days, partitions)
}

// partitions lists the days that have a partition, and checks that each is bounded by its day.
func (v *verification) partitions(ctx context.Context, db querier) (map[time.Time]bool, error) {
	rows, err := db.Query(ctx, `
		SELECT c.relname, coalesce(pg_catalog.pg_get_expr(c.relpartbound, c.oid), '')
		FROM pg_catalog.pg_inherits i JOIN pg_catalog.pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'kuberewind.deltas_data'::regclass ORDER BY c.relname`)
	if err != nil {
		return nil, fmt.Errorf("list the partitions: %w", err)
	}
	partitions := make(map[time.Time]bool)
	var wrong []Finding
	var name, bound string
	_, err = pgx.ForEachRow(rows, []any{&name, &bound}, func() error {
		at, err := time.Parse("deltas_p20060102", name)
		// The session's time zone is UTC.
		want := fmt.Sprintf("FOR VALUES FROM ('%s 00:00:00+00') TO ('%s 00:00:00+00')", at.Format(time.DateOnly), at.AddDate(0, 0, 1).Format(time.DateOnly))
		if err != nil || bound != want {
			wrong = append(wrong, Finding{Check: CheckPartition, Text: fmt.Sprintf("partition %s holds other times than its day: %s", name, bound)})
			return nil //nolint:nilerr // a name that is none of ours is the finding
		}
		partitions[at] = true
		return nil
	})
	for _, f := range wrong {
		if err := v.report(f); err != nil {
			return nil, err
		}
	}
	return partitions, err
}

// unlisted looks for rows in partitions that the table of days says nothing about.
func (v *verification) unlisted(ctx context.Context, days []day, partitions map[time.Time]bool) error {
	for at := range partitions {
		if slices.ContainsFunc(days, func(d day) bool { return d.day.Equal(at) }) {
			continue
		}
		var seq *int64
		err := v.record.pool.QueryRow(ctx, `
			SELECT min(seq) FROM kuberewind.record_deltas WHERE cluster = $1 AND observed_at >= $2 AND observed_at < $3 AND seq <= $4`,
			v.record.cluster.Number, at, at.AddDate(0, 0, 1), v.extent.LastSeq).Scan(&seq)
		if err != nil {
			return err
		}
		if seq != nil {
			if err := v.found(CheckDays, *seq, "the partition of %s holds deltas from seq %d on, and days says nothing of that day", at.Format(time.DateOnly), *seq); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *verification) day(ctx context.Context, d *day, partitions map[time.Time]bool) error {
	v.counts.Days++
	if !partitions[d.day] {
		if err := v.found(CheckPartition, d.firstSeq, "the partition of %s is missing, with seq %d to %d", d.day.Format(time.DateOnly), d.firstSeq, d.lastSeq); err != nil {
			return err
		}
		v.expected = d.lastSeq + 1
		v.forget()
		return nil
	}
	// Everything of the UTC day, whatever days says of its bounds.
	whole := day{day: d.day, firstSeq: 0, lastSeq: v.extent.LastSeq, firstAt: d.day, lastAt: d.day.AddDate(0, 0, 1).Add(-time.Microsecond)}
	g := &deltaReader{record: v.record, q: Query{ToSeq: v.extent.LastSeq}, limit: firstBatch}
	var err error
	var first, last *row
	g.day(ctx, &whole, func(batch []row, readErr error) bool {
		if readErr != nil {
			if !isMissingDay(readErr) {
				err = readErr
			}
			return false
		}
		if first == nil {
			first = &batch[0]
		}
		last = &batch[len(batch)-1]
		err = v.batch(ctx, batch)
		return err == nil
	})
	if err != nil {
		return err
	}
	return v.bounds(d, first, last)
}

func (v *verification) bounds(d *day, first, last *row) error {
	name := d.day.Format(time.DateOnly)
	switch {
	case first == nil:
		return v.found(CheckDays, d.firstSeq, "days says that %s holds seq %d to %d, and its partition holds none of this cluster", name, d.firstSeq, d.lastSeq)
	case first.seq != d.firstSeq || !first.observed.Equal(d.firstAt):
		return v.found(CheckDays, first.seq, "days says that %s begins with seq %d at %s, and it begins with seq %d at %s", name, d.firstSeq, exactly(d.firstAt), first.seq, exactly(first.observed))
	case last.seq != d.lastSeq && d.lastSeq <= v.extent.LastSeq, d.lastSeq == last.seq && !last.observed.Equal(d.lastAt):
		return v.found(CheckDays, last.seq, "days says that %s ends with seq %d at %s, and it ends with seq %d at %s", name, d.lastSeq, exactly(d.lastAt), last.seq, exactly(last.observed))
	}
	return nil
}

// forget drops what was folded: versions are missing.
func (v *verification) forget() {
	for _, o := range v.objects {
		o.doc = nil
	}
}
