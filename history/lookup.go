package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

// A Neighbourhood names the deltas of a life around a seq; 0 means none.
type Neighbourhood struct {
	Previous int64 // the delta before Last
	Last     int64 // the last delta at or before the seq
	Next     int64 // the first delta after the seq
}

// A Lookup finds single versions of known lives by an index.
type Lookup struct{ view *view }

// Lookup returns the reader of single versions.
func (r *Record) Lookup() Lookup { return Lookup{view: r.view} }

// Around finds the deltas of a life around a seq. It finds none on a day whose partition is gone.
func (u Lookup) Around(ctx context.Context, objectID, seq int64) (n Neighbourhood, err error) {
	days, err := u.view.daysFrom(ctx, objectID, maxSeq)
	if err != nil {
		return n, err
	}
	var before []int64
	for i := len(days) - 1; i >= 0 && len(before) < 2; i-- {
		found, err := u.lifeSeqs(ctx, &days[i], objectID, "seq <= $5 ORDER BY seq DESC LIMIT 2", seq)
		if err != nil {
			return n, err
		}
		before = append(before, found...)
	}
	for i := 0; i < len(days) && n.Next == 0; i++ {
		found, err := u.lifeSeqs(ctx, &days[i], objectID, "seq > $5 ORDER BY seq LIMIT 1", seq)
		if err != nil {
			return n, err
		}
		if len(found) > 0 {
			n.Next = found[0]
		}
	}
	if len(before) > 0 {
		n.Last = before[0]
	}
	if len(before) > 1 {
		n.Previous = before[1]
	}
	return n, nil
}

func (u Lookup) lifeSeqs(ctx context.Context, d *Day, objectID int64, which string, seq int64) ([]int64, error) {
	rows, err := u.view.db.Query(ctx, `
		SELECT seq FROM kuberewind.record_deltas WHERE cluster = $1 AND object_id = $2 AND observed_at BETWEEN $3 AND $4 AND `+which,
		u.view.cluster.Number, objectID, d.FirstAt, d.LastAt, seq)
	if err != nil {
		return nil, fmt.Errorf("find the deltas of a life around seq %d: %w", seq, err)
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return nil, fmt.Errorf("find the deltas of a life around seq %d: %w", seq, err)
	}
	return found, nil
}

// LastVersions returns the last version at or before a seq of some lives, by ObjectID. It excludes lives that were deleted
// by then, and lives that cannot be folded. If the partition of a day is gone, missing names the day. Lives whose last
// version may be on that day or before it are then missing, too.
func (u Lookup) LastVersions(ctx context.Context, ids []int64, seq int64) (found map[int64]patch.Doc, missing *MissingDayError, err error) {
	found = make(map[int64]patch.Doc, len(ids))
	var targets []target
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if id <= seq {
			targets = append(targets, target{id: id, bound: seq, from: seq + 1})
		}
	}
	if len(targets) == 0 {
		return found, nil, nil
	}
	days, err := u.view.daysFrom(ctx, 0, seq)
	if err != nil {
		return nil, nil, err
	}
	find := finder{view: u.view, workers: 1}
	_, err = find.find(ctx, targets, days, func(v *lastVersion) error {
		if v.err == nil && v.kind != delta.NumberDeleted {
			found[v.id] = slices.Clone(v.doc)
		}
		return nil
	})
	if errors.As(err, &missing) {
		return found, missing, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the versions of objects at seq %d: %w", seq, err)
	}
	return found, nil, nil
}

// FirstOfDay returns the first whole version of some lives, by ObjectID, on the UTC day of observed_at that holds a seq.
// Each life costs one index lookup. If a life has no whole version on that day, the result lacks it.
func (u Lookup) FirstOfDay(ctx context.Context, seq int64, ids []int64) (map[int64]patch.Doc, error) {
	docs := make(map[int64]patch.Doc, len(ids))
	if len(ids) == 0 {
		return docs, nil
	}
	days, err := u.view.daysFrom(ctx, seq, seq)
	if err != nil {
		return nil, err
	}
	first := firsts[struct{}]{view: u.view, pick: func(id int64, object patch.Doc) (none struct{}, ok bool) {
		docs[id] = slices.Clone(object)
		return none, false
	}}
	for i := range days {
		if _, _, err := first.in(ctx, &days[i], ids); err != nil {
			return nil, fmt.Errorf("read the first versions of objects: %w", err)
		}
	}
	return docs, nil
}
