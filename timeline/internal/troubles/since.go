package troubles

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/state"
)

// lookBack is how far back the search for the beginning of a trouble goes.
const lookBack = 24 * time.Hour

// lookFrom finds the first delta of the search for beginnings. It goes back from the instant, or from the end of the record
// if that is earlier: the recorder may have stopped long ago.
func lookFrom(ctx context.Context, rec *history.Record, point history.Point, last time.Time) (first int64, err error) {
	if point.Time.Before(last) {
		last = point.Time
	}
	first, _, err = rec.Timeline().Between(ctx, last.Add(-lookBack), last)
	return first, err
}

// since finds the beginnings of the troubles of a snapshot, in one reading. It adds what it cannot read to the answer.
func (s *snapshot) since(ctx context.Context, rec *history.Record, point history.Point, a *lack.Answer) error {
	ids := slices.Sorted(maps.Keys(s.items))
	if len(ids) == 0 {
		return nil
	}
	for v, err := range rec.Versions(ctx, history.Query{ObjectIDs: ids, FromSeq: s.first, ToSeq: max(point.Seq, point.Until)}) {
		var damaged *history.DamagedError
		var missing *history.MissingDayError
		switch {
		case errors.As(err, &missing):
			a.Lost(missing)
			s.lost(missing)
		case err != nil && !errors.As(err, &damaged):
			return err
		case !point.Holds(&v.Delta): // It happened after the point, but lies between recovered deltas.
		case damaged != nil:
			s.items[v.ObjectID].setUnknown("A version of it is damaged: the beginning is not known.")
			a.Incomplete = append(a.Incomplete, lack.DamagedAt(v.OccurredAt, damaged))
		default:
			s.items[v.ObjectID].apply(&v)
		}
	}
	return nil
}

// lost notes a missing day. Its rows are unknown for items that began before its end.
func (s *snapshot) lost(missing *history.MissingDayError) {
	for _, item := range s.items {
		if item.life.ObjectID <= missing.LastSeq {
			item.setUnknown("Versions of " + missing.Day.Format(time.DateOnly) + " are not in the database: the beginning is not known.")
		}
	}
}

func (i *Item) setUnknown(why string) { i.Since, i.SinceTime, i.Unknown = nil, nil, why }

// apply adds the next version of the object. decidedBy is the seq of the last version that decided Since or Unknown.
func (i *Item) apply(v *history.Version) {
	seq, at := v.Seq, v.OccurredAt.UnixMilli() // a pointer into the version would keep its object in memory
	switch {
	case !bad(v, v.Doc):
		i.setUnknown("")
	case v.Before == nil && v.Type == delta.Added, v.Before != nil && !bad(v, v.Before):
		i.Since, i.SinceTime, i.Unknown = &seq, &at, ""
	case v.Before == nil && v.Seq == v.ObjectID:
		i.setUnknown("It was already in trouble when it was first recorded.")
	default:
		return
	}
	i.decidedBy = seq
}

func bad(v *history.Version, doc patch.Doc) bool {
	if doc == nil {
		return false
	}
	s, _ := state.Of(v.Stream.GroupResource().String(), doc)
	return s == state.Bad
}
