package troubles

import (
	"context"
	"errors"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/timeline/internal/lack"
	"github.com/kuberewind/kuberewind/timeline/internal/state"
)

// lookBack is how far the begin of a trouble is looked for.
const lookBack = 24 * time.Hour

// since finds when the troubles began, in one reading. It looks back from the instant, or from the end of the record if that is earlier: the recorder may
// have stopped long ago.
func (a *Answer) since(ctx context.Context, rec *history.Record, point history.Point, last time.Time) error {
	byID, ids := map[int64]*Item{}, []int64{}
	for _, item := range a.Items {
		byID[item.life.ObjectID] = item
		ids = append(ids, item.life.ObjectID)
	}
	if len(ids) == 0 {
		return nil
	}
	if point.Time.Before(last) {
		last = point.Time
	}
	first, _, err := rec.Between(ctx, last.Add(-lookBack), last)
	if err != nil {
		return err
	}
	for v, err := range rec.Versions(ctx, history.Query{ObjectIDs: ids, FromSeq: first, ToSeq: max(point.Seq, point.Until)}) {
		var damaged *history.DamagedError
		var missing *history.MissingDayError
		switch {
		case errors.As(err, &missing):
			a.lost(missing)
		case err != nil && !errors.As(err, &damaged):
			return err
		case !point.Holds(&v.Delta): // It stands among what was caught up on by then.
		case damaged != nil:
			byID[v.ObjectID].doubt("A version of it is damaged: since when it is so is not known.")
			a.Incomplete = append(a.Incomplete, lack.Hurt(v.OccurredAt, damaged))
		default:
			byID[v.ObjectID].see(&v)
		}
	}
	return nil
}

// lost notes a day that is gone. Its rows are unknown for items that began before its end.
func (a *Answer) lost(missing *history.MissingDayError) {
	a.Lost(missing)
	for _, item := range a.Items {
		if item.life.ObjectID <= missing.LastSeq {
			item.doubt("Versions of " + missing.Day.Format(time.DateOnly) + " are not in the database: since when it is so is not known.")
		}
	}
}

func (i *Item) doubt(why string) { i.Since, i.SinceTime, i.Unknown = nil, nil, why }

// see takes the next version of the object.
func (i *Item) see(v *history.Version) {
	at := v.OccurredAt.UnixMilli()
	switch {
	case !bad(v, v.Doc):
		i.doubt("")
	case v.Before == nil && v.Type == delta.Added, v.Before != nil && !bad(v, v.Before):
		i.Since, i.SinceTime, i.Unknown = &v.Seq, &at, ""
	case v.Before == nil && v.Seq == v.ObjectID:
		i.doubt("It was so when it was first recorded.")
	}
}

func bad(v *history.Version, doc patch.Doc) bool {
	if doc == nil {
		return false
	}
	s, _ := state.Of(v.Stream.GroupResource().String(), doc)
	return s == state.Bad
}
