package verify

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
)

// begin reads the record's description of itself, and returns the days that have a partition.
func (v *recordWalk) begin(ctx context.Context) (partitions map[time.Time]bool, err error) {
	if v.survey, err = v.record.Survey(ctx); err != nil {
		return nil, err
	}
	v.counts.Streams = int64(len(v.survey.Streams))
	v.checkpoints = v.survey.Checkpoints
	v.generation = make(map[int32]time.Time)
	for i := range v.survey.Gaps {
		if g := &v.survey.Gaps[i]; g.Cause == delta.CauseHistoryReversed && !g.ToAt.IsZero() {
			v.generation[g.Stream.ID] = g.ToAt
		}
	}
	if partitions, err = v.partitions(); err != nil {
		return nil, err
	}
	return partitions, v.unlisted(ctx, partitions)
}

// partitions checks that each partition is bounded by its day.
func (v *recordWalk) partitions() (map[time.Time]bool, error) {
	there := make(map[time.Time]bool)
	for _, p := range v.survey.Partitions {
		at, err := time.Parse("deltas_p20060102", p.Name)
		// The session's time zone is UTC.
		want := fmt.Sprintf("FOR VALUES FROM ('%s 00:00:00+00') TO ('%s 00:00:00+00')", at.Format(time.DateOnly), at.AddDate(0, 0, 1).Format(time.DateOnly))
		if err == nil && p.Bound == want {
			there[at] = true
			continue
		}
		if err := v.found(CheckPartition, 0, "partition %s holds other times than its day: %s", p.Name, p.Bound); err != nil {
			return nil, err
		}
	}
	return there, nil
}

// dropped checks the seqs before the oldest remaining one. Prunes must name each of them as dropped, and no other seq.
func (v *recordWalk) dropped() error {
	left := v.survey.FirstSeq
	if left == 0 {
		left = v.survey.LastSeq + 1
	}
	expected := int64(1)
	for _, p := range append(v.survey.Prunes, history.Prune{FirstSeq: left}) {
		if p.FirstSeq > expected {
			if err := v.found(CheckSeq, expected, "seq %d to %d are not on record, and no prune says that they were dropped", expected, p.FirstSeq-1); err != nil {
				return err
			}
		}
		if p.FirstSeq < expected {
			if err := v.found(CheckSeq, p.FirstSeq, "a prune says that seq %d to %d were dropped, but seq %d is on record", p.FirstSeq, expected-1, p.FirstSeq); err != nil {
				return err
			}
		}
		expected = p.LastSeq + 1
	}
	return nil
}

// unlisted looks for rows in partitions whose day is not in the table of days.
func (v *recordWalk) unlisted(ctx context.Context, partitions map[time.Time]bool) error {
	for at := range partitions {
		if slices.ContainsFunc(v.survey.Days, func(d history.Day) bool { return d.Day.Equal(at) }) {
			continue
		}
		var seq *int64
		err := v.record.Pool().QueryRow(ctx, `
			SELECT min(seq) FROM kuberewind.record_deltas WHERE cluster = $1 AND observed_at >= $2 AND observed_at < $3 AND seq <= $4`,
			v.record.Cluster().Number, at, at.AddDate(0, 0, 1), v.survey.LastSeq).Scan(&seq)
		if err != nil {
			return err
		}
		if seq != nil {
			if err := v.found(CheckDays, *seq, "the partition of %s holds deltas from seq %d on, but days has no row for that day", at.Format(time.DateOnly), *seq); err != nil {
				return err
			}
		}
	}
	return nil
}

func (v *recordWalk) day(ctx context.Context, d *history.Day, partitions map[time.Time]bool) error {
	v.counts.Days++
	if !partitions[d.Day] {
		if err := v.found(CheckPartition, d.FirstSeq, "the partition of %s is missing, with seq %d to %d", d.Day.Format(time.DateOnly), d.FirstSeq, d.LastSeq); err != nil {
			return err
		}
		v.expected = d.LastSeq + 1
		v.forget()
		return nil
	}
	// Read everything of the UTC day, whatever the table of days says about its bounds.
	var first, last *history.Row
	for batch, err := range v.record.Days().Rows(ctx, d.Day, v.survey.LastSeq) {
		if err != nil {
			return err
		}
		if first == nil {
			first = &batch[0]
		}
		last = &batch[len(batch)-1]
		if err := v.batch(ctx, batch); err != nil {
			return err
		}
	}
	return v.bounds(d, first, last)
}

func (v *recordWalk) bounds(d *history.Day, first, last *history.Row) error {
	name := d.Day.Format(time.DateOnly)
	switch {
	case first == nil:
		return v.found(CheckDays, d.FirstSeq, "days says that %s holds seq %d to %d, but its partition holds none of this cluster", name, d.FirstSeq, d.LastSeq)
	case first.Seq != d.FirstSeq || !first.ObservedAt.Equal(d.FirstAt):
		return v.found(CheckDays, first.Seq, "days says that %s begins with seq %d at %s, but it begins with seq %d at %s", name, d.FirstSeq, exactly(d.FirstAt), first.Seq, exactly(first.ObservedAt))
	case last.Seq != d.LastSeq && d.LastSeq <= v.survey.LastSeq, d.LastSeq == last.Seq && !last.ObservedAt.Equal(d.LastAt):
		return v.found(CheckDays, last.Seq, "days says that %s ends with seq %d at %s, but it ends with seq %d at %s", name, d.LastSeq, exactly(d.LastAt), last.Seq, exactly(last.ObservedAt))
	}
	return nil
}

// forget drops the folded versions, because later versions are missing.
func (v *recordWalk) forget() {
	for _, o := range v.objects {
		o.doc = nil
	}
}
