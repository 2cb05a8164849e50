package history

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
)

// byRV finds a resource version in each stream of the scope. The deltas before the first watch event beyond it belong to
// the point. Rows from lists among them count only if they are not beyond it themselves.
func (f *resolver) byRV(ctx context.Context) error {
	p := &f.point
	p.RV = p.Instant.rv
	streams, err := f.view.streamsIn(ctx, f.scope)
	if err != nil {
		return err
	}
	if len(streams) == 0 {
		return fmt.Errorf("%w in this scope", ErrEmpty)
	}
	if err := f.dropped(ctx, streams); err != nil {
		return err
	}
	gaps, err := f.view.gaps(ctx, f.scope)
	if err != nil {
		return err
	}
	p.streams = make(map[int32]streamPoint, len(streams))
	for _, s := range streams {
		p.streams[s.ID] = streamPoint{seq: f.extent.LastSeq, sure: math.MaxInt64}
	}
	compared, resources, err := (&etcdSurvey{view: f.view, extent: f.extent}).oneEtcd(ctx, streams, gaps)
	if err != nil {
		return err
	}
	if resources > 1 {
		f.note(NoteOneEtcd, nil, time.Time{}, time.Time{},
			"one etcd serves these %d resources: the resource versions in their lists and watches interleave in time and in number", resources)
	}
	for i := range gaps {
		if g := &gaps[i]; compared[g.Stream.ID] {
			if err := f.generation(ctx, g); err != nil {
				return err
			}
		}
	}
	if err := f.beyond(ctx, streams, compared); err != nil {
		return err
	}
	if err := f.gapsAround(ctx, gaps, compared); err != nil {
		return err
	}
	return f.close(ctx, streams, compared)
}

// dropped refuses a resource version if a row before the record becomes whole is beyond it. Objects of that version were
// dropped with earlier days.
func (f *resolver) dropped(ctx context.Context, streams []*Stream) error {
	if !f.extent.Pruned {
		return nil
	}
	ids := make([]int32, len(streams))
	for i, s := range streams {
		ids[i] = s.ID
	}
	var later bool
	err := f.view.db.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM kuberewind.record_deltas
			WHERE cluster = $1 AND stream = ANY ($2) AND seq <= $3 AND observed_at BETWEEN $4 AND $5 AND NOT `+fmt.Sprintf(rvCounts, 6)+`)`,
		f.view.cluster.Number, ids, f.extent.WholeSeq, f.extent.FirstAt, f.extent.WholeAt, f.point.RV).Scan(&later)
	if err != nil {
		return fmt.Errorf("look for what was dropped: %w", err)
	}
	if later {
		return f.before()
	}
	return nil
}

// generation moves the beginning of a stream to after the gap in which the server's history was rolled back. Its resource
// versions were used twice. A number then means the version of the newest generation.
func (f *resolver) generation(ctx context.Context, g *Gap) error {
	if g.Cause != delta.CauseHistoryReversed || g.ToAt.IsZero() {
		return nil
	}
	if g.ToRV != "" && delta.Precedes(f.point.RV, g.ToRV) {
		return fmt.Errorf("the server's history was rolled back at %[3]s. Resource version %[1]s of %[2]s counts from then, but the record is whole only from %[4]s on: name the instant by its time or seq",
			f.point.RV, g.Stream, stamp(g.ToAt), g.ToRV)
	}
	first, last, err := f.batches(ctx, g)
	if err != nil {
		return err
	}
	from := last + 1
	days, err := f.view.daysFrom(ctx, first, last)
	if err != nil {
		return err
	}
	for _, d := range slices.Backward(days) {
		var seq *int64
		// These are the rows of the list, and of objects that the list no longer contained. The same batch may hold older
		// rows: rows of the watch, and rows that the recorder stored again before the list.
		err := f.view.db.QueryRow(ctx, `
			SELECT min(seq) FROM kuberewind.record_deltas
			WHERE cluster = $1 AND seq BETWEEN $2 AND $3 AND observed_at BETWEEN $4 AND $5 AND stream = $6 AND source NOT IN (1, 4)`,
			f.view.cluster.Number, first, last, d.FirstAt, d.LastAt, g.Stream.ID).Scan(&seq)
		if err != nil {
			return fmt.Errorf("find the first seq of %s after the rollback: %w", g.Stream, err)
		}
		if seq != nil {
			from = *seq
		}
	}
	at := f.point.streams[g.Stream.ID]
	at.from = from
	f.point.streams[g.Stream.ID] = at
	f.note(NoteGeneration, g.Stream, g.FromAt, g.ToAt,
		"the server's history of %s went backwards at %s: resource version %s counts as of after that", g.Stream, stamp(g.ToAt), f.point.RV)
	return nil
}

// batches returns the first seq of the commit that opened a gap, and the last seq of the commit that closed it.
func (f *resolver) batches(ctx context.Context, g *Gap) (first, last int64, err error) {
	from, to := g.FromAt, g.ToAt
	if from.IsZero() {
		from = f.extent.FirstAt.Add(-24 * time.Hour) // a commit may have no deltas
	}
	if to.IsZero() {
		to = f.extent.LastAt
	}
	err = f.view.db.QueryRow(ctx, `
		SELECT coalesce(min(first_seq), 1), coalesce(max(last_seq) FILTER (WHERE batch = $3), $6) FROM kuberewind.record_batches
		WHERE cluster = $1 AND batch IN ($2, $3) AND observed_at BETWEEN $4 AND $5`,
		f.view.cluster.Number, g.OpenedBatch, g.ClosedBatch, from, to, f.extent.LastSeq).Scan(&first, &last)
	if err != nil {
		err = fmt.Errorf("find the commits of gap %d: %w", g.Number, err)
	}
	return first, last, err
}

// beyond finds the first watch delta of each stream beyond the resource version.
func (f *resolver) beyond(ctx context.Context, streams []*Stream, compared map[int32]bool) error {
	var left []int32
	from := int64(0)
	for _, s := range streams {
		if compared[s.ID] && delta.Precedes(f.point.RV, s.LastRV) {
			left = append(left, s.ID)
			from = max(from, f.point.streams[s.ID].from)
		}
	}
	after, limits, err := f.brackets(ctx, left)
	if err != nil || len(left) == 0 {
		return err
	}
	days, err := f.view.daysFrom(ctx, after+1, f.extent.LastSeq)
	if err != nil {
		return err
	}
	if after == 0 {
		if days, err = f.skipDays(ctx, days, left, from); err != nil {
			return err
		}
	}
	for i := range days {
		if left, err = f.beyondIn(ctx, &days[i], left, after, limits); err != nil || len(left) == 0 {
			return err
		}
	}
	return nil
}

func (f *resolver) beyondIn(ctx context.Context, d *Day, left []int32, after int64, limits map[int32]int64) ([]int32, error) {
	if err := f.view.present(ctx, d); err != nil {
		return nil, err
	}
	free := make([]int64, len(left))
	for i, id := range left {
		free[i] = f.point.streams[id].from
	}
	rows, err := f.view.db.Query(ctx, `
		SELECT d.stream, min(d.seq) FROM kuberewind.record_deltas d
		JOIN unnest($6::int[], $7::bigint[]) AS o (stream, free) ON o.stream = d.stream
		WHERE d.cluster = $1 AND d.seq > $2 AND d.observed_at BETWEEN $3 AND $4 AND d.source = 1 AND d.seq >= o.free
			AND NOT `+fmt.Sprintf(rvCounts, 5)+`
		GROUP BY d.stream`, f.view.cluster.Number, after, d.FirstAt, d.LastAt, f.point.RV, left, free)
	if err != nil {
		return nil, fmt.Errorf("find resource version %s: %w", f.point.RV, err)
	}
	found := make(map[int32]int64)
	var id int32
	var seq int64
	if _, err := pgx.ForEachRow(rows, []any{&id, &seq}, func() error {
		found[id] = seq
		return nil
	}); err != nil {
		return nil, fmt.Errorf("find resource version %s: %w", f.point.RV, err)
	}
	return slices.DeleteFunc(left, func(id int32) bool {
		at := f.point.streams[id]
		first, ok := found[id]
		limit, limited := limits[id]
		switch {
		case limited && (ok && limit < first || !ok && limit <= d.LastSeq):
			at.seq = limit
		case ok:
			at.seq = first - 1
		default:
			return false
		}
		f.point.streams[id] = at
		return true
	}), nil
}

// brackets uses the resource versions of streams that checkpoints hold. It returns the last seq up to which no stream has
// passed the version. For each stream it returns the first known seq at which the stream has passed it. If no delta lies
// between the two, the state there is the state of the resource version.
func (f *resolver) brackets(ctx context.Context, streams []int32) (after int64, limits map[int32]int64, err error) {
	limits = make(map[int32]int64)
	infos, err := f.view.checkpoints().List(ctx, f.extent.LastSeq, maxSeq)
	for _, c := range infos { // newest first
		all := true
		for _, id := range streams {
			rv, known := c.Streams[id]
			if c.Seq < f.point.streams[id].from || !known || delta.Precedes(f.point.RV, rv) {
				all = false
			}
			if c.Seq >= f.point.streams[id].from && known && delta.Precedes(f.point.RV, rv) {
				limits[id] = c.Seq
			}
		}
		if all {
			return c.Seq, limits, err
		}
	}
	return 0, limits, err
}

// skipDays excludes the days that ended before the resource version. It finds them by bisection: on such a day, the first
// watch event has not passed the version. It keeps one extra day, because streams do not move in step.
func (f *resolver) skipDays(ctx context.Context, days []Day, streams []int32, from int64) ([]Day, error) {
	days = slices.DeleteFunc(days, func(d Day) bool { return d.LastSeq < from })
	low, high := 0, len(days)
	for high-low > 1 {
		middle := low + (high-low)/2
		beyond, err := f.beginsBeyond(ctx, days[middle:high], streams)
		if err != nil {
			return nil, err
		}
		if beyond {
			high = middle
		} else {
			low = middle
		}
	}
	return days[max(low-1, 0):], nil
}

// beginsBeyond checks the first watch delta of some days.
func (f *resolver) beginsBeyond(ctx context.Context, days []Day, streams []int32) (bool, error) {
	for i := range days {
		var rv string
		err := f.view.db.QueryRow(ctx, `
			SELECT rv FROM kuberewind.record_deltas
			WHERE cluster = $1 AND observed_at BETWEEN $2 AND $3 AND stream = ANY ($4::int[]) AND source = 1 ORDER BY seq LIMIT 1`,
			f.view.cluster.Number, days[i].FirstAt, days[i].LastAt, streams).Scan(&rv)
		switch {
		case err == nil:
			return delta.Precedes(f.point.RV, rv), nil
		case !isNoRows(err):
			return false, fmt.Errorf("find resource version %s: %w", f.point.RV, err)
		}
	}
	return true, nil
}

// gapsAround notes the gaps that contain the resource version.
func (f *resolver) gapsAround(ctx context.Context, gaps []Gap, compared map[int32]bool) error {
	for i := range gaps {
		g := &gaps[i]
		if !compared[g.Stream.ID] || (g.ToRV != "" && !delta.Precedes(f.point.RV, g.ToRV)) || (g.FromRV != "" && !delta.Precedes(g.FromRV, f.point.RV)) {
			continue
		}
		if g.Outcome == delta.OutcomeResumed && g.FromRV != "" {
			continue
		}
		f.noteGap(g)
		first, _, err := f.batches(ctx, g)
		if err != nil {
			return err
		}
		at := f.point.streams[g.Stream.ID]
		at.sure = min(at.sure, first-1)
		f.point.streams[g.Stream.ID] = at
	}
	return nil
}

// close completes the point. If a stream has nothing beyond the resource version, its last state counts.
func (f *resolver) close(ctx context.Context, streams []*Stream, compared map[int32]bool) (err error) {
	p := &f.point
	before := true
	for _, s := range streams {
		at := p.streams[s.ID]
		if at.seq < f.extent.LastSeq {
			p.Seq = max(p.Seq, at.seq)
		}
		before = before && compared[s.ID] && f.startsAfter(s)
	}
	for _, s := range streams {
		at := p.streams[s.ID]
		if at.seq == f.extent.LastSeq {
			p.Seq = max(p.Seq, s.LastSeq)
		}
		if compared[s.ID] && s.LastRV != "" && !delta.Precedes(p.RV, s.LastRV) && s.LastRV != p.RV {
			f.note(NoteAfterEnd, s, f.extent.LastAt, time.Time{}, "the watch of %s has shown nothing after resource version %s: this is its state since then", s, s.LastRV)
		}
	}
	p.Seq = max(p.Seq, f.extent.FirstSeq)
	for id, at := range p.streams {
		at.seq = min(at.seq, p.Seq)
		if !compared[id] {
			at.from = math.MaxInt64 // nothing of this stream has changed, so its numbers do not matter
		}
		at.sure = min(at.sure, at.seq)
		p.streams[id] = at
	}
	p.sureSeq()
	if before {
		return f.before()
	}
	p.Time, err = calendar{view: f.view}.timeOf(ctx, p.Seq)
	return err
}

// startsAfter reports whether the first list of a stream was beyond the resource version.
func (f *resolver) startsAfter(s *Stream) bool {
	for _, n := range f.point.Notes {
		if n.Kind == NoteNotYet && n.Group == s.Group && n.Resource == s.Resource {
			return true
		}
	}
	return false
}

// sureSeq prevents a stream that ends early from limiting the other streams. Later deltas of that stream are judged one by
// one.
func (p *Point) sureSeq() {
	for id, at := range p.streams {
		if at.sure == at.seq && at.seq == p.Seq {
			at.sure = p.Seq
		}
		p.streams[id] = at
	}
}
