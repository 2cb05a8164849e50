package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/delta"
)

// StreamRV returns the resource version that a stream had reached at a point. A list at that moment would have had it. It
// is "" if the stream had none yet.
func (r *Record) StreamRV(ctx context.Context, p Point, stream int32) (rv string, err error) {
	err = r.view.inSnapshot(ctx, func(v *view) error {
		rv, err = (&reach{view: v, point: &p, stream: stream}).rv(ctx)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("find the resource version of stream %d at %s: %w", stream, p.Instant, err)
	}
	return rv, nil
}

// A reach finds how far a stream had come at a point.
type reach struct {
	view   *view // within a transaction
	point  *Point
	stream int32
}

func (g *reach) rv(ctx context.Context) (string, error) {
	set, err := g.view.readStreams(ctx)
	if err != nil {
		return "", err
	}
	s := set.byID[g.stream]
	if s == nil {
		return "", fmt.Errorf("the record has no stream %d", g.stream)
	}
	if g.point.RV != "" {
		if !delta.Precedes(g.point.RV, s.LastRV) {
			return s.LastRV, nil // the stream never went beyond it
		}
		return g.point.RV, nil
	}
	extent, err := g.view.extent(ctx)
	if err != nil || g.point.Seq >= extent.LastSeq {
		return s.LastRV, err
	}
	return g.upToPoint(ctx)
}

// upToPoint returns the newest resource version that the stream's watch, its lists and checkpoints showed by the point's
// seq.
func (g *reach) upToPoint(ctx context.Context) (string, error) {
	gaps, err := g.view.gaps(ctx, Scope{Streams: []int32{g.stream}})
	if err != nil {
		return "", err
	}
	rv, since := "", int64(0)
	var generation time.Time // when the newest generation of resource versions began
	for i := range gaps {
		gap := &gaps[i]
		if gap.ToAt.IsZero() || gap.ToAt.After(g.point.Time) || gap.ToRV == "" {
			continue
		}
		rv = gap.ToRV // lists of one stream follow each other, even across a rollback
		if gap.Cause == delta.CauseHistoryReversed {
			generation = gap.ToAt
		}
	}
	infos, err := g.view.checkpoints().List(ctx, g.point.Seq, 1)
	if err != nil {
		return "", err
	}
	if len(infos) > 0 && infos[0].Streams[g.stream] != "" && infos[0].ObservedAt.After(generation) {
		since = infos[0].Seq
		if rv == "" || !delta.Precedes(infos[0].Streams[g.stream], rv) {
			rv = infos[0].Streams[g.stream]
		}
	}
	days, err := g.view.daysFrom(ctx, since+1, g.point.Seq)
	if err != nil {
		return "", err
	}
	for _, d := range slices.Backward(days) {
		var last string
		err := g.view.db.QueryRow(ctx, `
			SELECT rv FROM kuberewind.record_deltas
			WHERE cluster = $1 AND seq > $2 AND seq <= $3 AND observed_at BETWEEN $4 AND $5 AND stream = $6 AND source = 1 AND observed_at >= $7
			ORDER BY seq DESC LIMIT 1`, g.view.cluster.Number, since, g.point.Seq, d.FirstAt, d.LastAt, g.stream, generation).Scan(&last)
		if err == nil {
			return delta.Later(rv, last), nil
		}
		if !isNoRows(err) {
			return "", fmt.Errorf("read the deltas of %s: %w", d.Day.Format(time.DateOnly), err)
		}
	}
	return rv, nil
}
