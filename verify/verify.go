package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
)

// Record reads the whole record and yields each violation. It keeps every living object, compressed, and a few thousand
// rows. It skips rows that are written while it runs. Chain finds later changes. Record finds errors from the time of
// writing, and changes outside the chain. The auditor's role may call it.
func Record(ctx context.Context, rec *history.Record, o Options) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		v := &recordWalk{record: rec, options: o, counts: o.Counts, objects: make(map[int64]*held), last: make(map[int32]*lastOfStream)}
		if v.counts == nil {
			v.counts = new(Counts)
		}
		v.report = func(f Finding) error {
			v.counts.Findings++
			if !yield(f, nil) {
				return errStopped
			}
			return nil
		}
		if err := v.run(ctx); err != nil && !errors.Is(err, errStopped) {
			yield(Finding{}, fmt.Errorf("verify the record: %w", err))
		}
	}
}

// errStopped says that the caller has stopped reading.
var errStopped = errors.New("stopped")

func (v *recordWalk) run(ctx context.Context) error {
	partitions, err := v.begin(ctx)
	if err != nil {
		return err
	}
	if err := v.dropped(); err != nil || len(v.survey.Days) == 0 {
		return err
	}
	v.expected = v.survey.FirstSeq
	for i := range v.survey.Days {
		if err := v.day(ctx, &v.survey.Days[i], partitions); err != nil {
			return err
		}
	}
	if v.expected != v.survey.LastSeq+1 {
		if err := v.found(CheckSeq, v.expected, "the head is at seq %d, but the last delta on record is seq %d", v.survey.LastSeq, v.expected-1); err != nil {
			return err
		}
	}
	if err := v.positions(); err != nil {
		return err
	}
	if err := v.lives(ctx); err != nil {
		return err
	}
	return v.living(ctx)
}

// positions compares the streams with their last rows.
func (v *recordWalk) positions() error {
	for i := range v.survey.Streams {
		s := &v.survey.Streams[i]
		last := v.last[s.ID]
		if last == nil {
			last = new(lastOfStream)
		}
		if last.seq != s.LastSeq && (last.seq != 0 || s.LastSeq >= v.survey.FirstSeq) {
			if err := v.found(CheckStreams, s.LastSeq, "the last delta of %s is seq %d, but the stream says seq %d", s, last.seq, s.LastSeq); err != nil {
				return err
			}
		}
		if last.rv != "" && delta.Precedes(s.LastRV, last.rv) {
			if err := v.found(CheckStreams, last.seq, "%s is recorded up to resource version %s, but the stream says %q", s, last.rv, s.LastRV); err != nil {
				return err
			}
		}
		delete(v.last, s.ID)
	}
	for id, last := range v.last {
		if err := v.found(CheckStreams, last.seq, "stream %d has deltas, but does not exist", id); err != nil {
			return err
		}
	}
	return nil
}
