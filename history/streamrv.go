package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// StreamRV is the resource version that a stream had reached at a point, which a list would have had. It is "" if the stream
// had none yet.
func (r *Record) StreamRV(ctx context.Context, p Point, stream int32) (rv string, err error) {
	err = r.atOnce(ctx, func(tx pgx.Tx) error {
		rv, err = r.streamRV(ctx, tx, &p, stream)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("find the resource version of stream %d at %s: %w", stream, p.Instant, err)
	}
	return rv, nil
}

func (r *Record) streamRV(ctx context.Context, tx pgx.Tx, p *Point, id int32) (string, error) {
	set, err := r.readStreams(ctx, tx)
	if err != nil {
		return "", err
	}
	s := set.byID[id]
	if s == nil {
		return "", fmt.Errorf("the record has no stream %d", id)
	}
	if p.RV != "" {
		if !delta.Precedes(p.RV, s.LastRV) {
			return s.LastRV, nil // it was never seen beyond it
		}
		return p.RV, nil
	}
	extent, err := r.extent(ctx, tx)
	if err != nil || p.Seq >= extent.LastSeq {
		return s.LastRV, err
	}
	return r.rvUpTo(ctx, tx, id, p)
}

// rvUpTo gives the newest of what the stream's watch, its lists and checkpoints showed by a seq.
func (r *Record) rvUpTo(ctx context.Context, tx pgx.Tx, id int32, p *Point) (string, error) {
	gaps, err := r.gaps(ctx, tx, Scope{Streams: []int32{id}})
	if err != nil {
		return "", err
	}
	rv, since := "", int64(0)
	var generation time.Time // when the newest generation of numbers began
	for i := range gaps {
		g := &gaps[i]
		if g.ToAt.IsZero() || g.ToAt.After(p.Time) || g.ToRV == "" {
			continue
		}
		rv = g.ToRV // lists of one stream follow each other, also where the numbers went back
		if g.Cause == delta.CauseHistoryReversed {
			generation = g.ToAt
		}
	}
	infos, err := r.checkpoints(tx).List(ctx, p.Seq, 1)
	if err != nil {
		return "", err
	}
	if len(infos) > 0 && infos[0].Streams[id] != "" && infos[0].ObservedAt.After(generation) {
		since = infos[0].Seq
		if rv == "" || !delta.Precedes(infos[0].Streams[id], rv) {
			rv = infos[0].Streams[id]
		}
	}
	days, err := r.daysFrom(ctx, tx, since+1, p.Seq)
	if err != nil {
		return "", err
	}
	for _, d := range slices.Backward(days) {
		var last string
		err := tx.QueryRow(ctx, `
			SELECT rv FROM kuberewind.record_deltas
			WHERE cluster = $1 AND seq > $2 AND seq <= $3 AND observed_at BETWEEN $4 AND $5 AND stream = $6 AND source = 1 AND observed_at >= $7
			ORDER BY seq DESC LIMIT 1`, r.cluster.Number, since, p.Seq, d.FirstAt, d.LastAt, id, generation).Scan(&last)
		if err == nil {
			return delta.Later(rv, last), nil
		}
		if !isNoRows(err) {
			return "", fmt.Errorf("read the deltas of %s: %w", d.Day.Format(time.DateOnly), err)
		}
	}
	return rv, nil
}
