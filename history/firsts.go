package history

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/patch"
)

// livesChunk is the number of objects in one query.
const livesChunk = 2000

// A firsts picks a value from the first whole version of each life. Several goroutines call pick, which must not keep the
// object.
type firsts[T any] struct {
	view *view // through the pool
	pick func(int64, patch.Doc) (T, bool)
}

// find picks from the first whole version of each life, in no order. It sorts wanted.
func (f *firsts[T]) find(ctx context.Context, wanted []int64) ([]T, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	slices.Sort(wanted)
	days, err := f.view.daysFrom(ctx, 0, maxSeq)
	if err != nil {
		return nil, err
	}
	found, missing, err := f.byDay(ctx, days, wanted)
	if err != nil {
		return nil, err
	}
	for i := range days {
		if len(missing) == 0 {
			break
		}
		// If the day on which a life began was dropped, the life has a keyframe on a later day.
		n, _ := slices.BinarySearch(missing, days[i].LastSeq+1)
		more, left, err := f.in(ctx, &days[i], missing[:n])
		if err != nil {
			return nil, err
		}
		found, missing = append(found, more...), append(left, missing[n:]...)
	}
	return found, nil
}

// byDay looks for each life on the first day that can hold it, on several days at once. It returns the lives that it did
// not find.
func (f *firsts[T]) byDay(ctx context.Context, days []Day, wanted []int64) (found []T, missing []int64, err error) {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	foundIn, missingIn := make([][]T, len(days)), make([][]int64, len(days))
	for i := range days {
		n, _ := slices.BinarySearch(wanted, days[i].LastSeq+1)
		ids := wanted[:n]
		wanted = wanted[n:]
		work.Go(func() (err error) {
			foundIn[i], missingIn[i], err = f.in(ctx, &days[i], ids)
			return err
		})
	}
	err = work.Wait()
	return slices.Concat(foundIn...), slices.Concat(missingIn...), err
}

// in looks for lives on one day. It returns the lives that have no version there.
func (f *firsts[T]) in(ctx context.Context, d *Day, ids []int64) (found []T, missing []int64, err error) {
	for chunk := range slices.Chunk(ids, livesChunk) {
		more, left, err := f.chunk(ctx, d, chunk)
		if err != nil {
			return nil, nil, fmt.Errorf("find first versions in the deltas of %s: %w", d.Day.Format(time.DateOnly), err)
		}
		found, missing = append(found, more...), append(missing, left...)
	}
	slices.Sort(missing)
	return found, missing, nil
}

func (f *firsts[T]) chunk(ctx context.Context, d *Day, ids []int64) (found []T, missing []int64, err error) {
	rows, err := f.view.db.Query(ctx, `
		SELECT o.id, k.object::text
		FROM unnest($2::bigint[]) AS o (id)
		LEFT JOIN LATERAL (
			SELECT object FROM kuberewind.record_deltas
			WHERE cluster = $1 AND object_id = o.id AND object IS NOT NULL AND observed_at BETWEEN $3 AND $4
			ORDER BY seq LIMIT 1
		) AS k ON true`, f.view.cluster.Number, ids, d.FirstAt, d.LastAt)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var object pgText
		if err := rows.Scan(&id, &object); err != nil {
			return nil, nil, err
		}
		if object == nil {
			missing = append(missing, id)
			continue
		}
		if picked, ok := f.pick(id, patch.Doc(object)); ok {
			found = append(found, picked)
		}
	}
	return found, missing, rows.Err()
}
