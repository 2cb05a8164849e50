package history

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/internal/owner"
	"github.com/kuberewind/kuberewind/patch"
)

// A Relation says to which other objects a life refers, by its first version on record.
type Relation struct {
	Life
	Owners []string // UIDs of its ownerReferences, the controller first
	About  string   // of an Event, the UID of what it is about
}

// relationsChunk is how many objects are asked for at once.
const relationsChunk = 2000

// Relations gives the relations of lives that refer to another object. Each life costs one look into an index. A day whose
// partition is gone has none.
func (r *Record) Relations(ctx context.Context, lives []Life) iter.Seq2[Relation, error] {
	return func(yield func(Relation, error) bool) {
		if err := r.relations(ctx, lives, func(found Relation) bool { return yield(found, nil) }); err != nil {
			yield(Relation{}, fmt.Errorf("read how objects of the record relate: %w", err))
		}
	}
}

func (r *Record) relations(ctx context.Context, lives []Life, give func(Relation) bool) error {
	byID, wanted := make(map[int64]Life, len(lives)), make([]int64, 0, len(lives))
	for _, l := range lives {
		byID[l.ObjectID] = l
		wanted = append(wanted, l.ObjectID)
	}
	found, err := firstVersions(ctx, r, wanted, func(id int64, object patch.Doc) (Relation, bool) {
		relation, ok := relationOf(object)
		relation.Life = byID[id]
		return relation, ok
	})
	if err != nil {
		return err
	}
	for _, each := range found {
		if !give(each) {
			return nil
		}
	}
	return nil
}

// FirstOfDay gives the first whole version of some lives on the UTC day of observed_at that holds a seq, by ObjectID. Each costs one look into an
// index. A life without one on that day has none here.
func (r *Record) FirstOfDay(ctx context.Context, seq int64, ids []int64) (map[int64]patch.Doc, error) {
	docs := make(map[int64]patch.Doc, len(ids))
	if len(ids) == 0 {
		return docs, nil
	}
	days, err := r.daysFrom(ctx, r.pool, seq, seq)
	if err != nil {
		return nil, err
	}
	for i := range days {
		_, _, err := firstIn(ctx, r, &days[i], ids, func(id int64, object patch.Doc) (none struct{}, ok bool) {
			docs[id] = slices.Clone(object)
			return none, false
		})
		if err != nil {
			return nil, fmt.Errorf("read the first versions of objects: %w", err)
		}
	}
	return docs, nil
}

// firstVersions picks from the first whole version of each life, in no order. It sorts wanted. pick is called from several goroutines, and must not
// keep the object.
func firstVersions[T any](ctx context.Context, r *Record, wanted []int64, pick func(int64, patch.Doc) (T, bool)) ([]T, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	slices.Sort(wanted)
	days, err := r.daysFrom(ctx, r.pool, 0, wholeSeq)
	if err != nil {
		return nil, err
	}
	found, missing, err := firstByDay(ctx, r, days, wanted, pick)
	if err != nil {
		return nil, err
	}
	for i := range days {
		if len(missing) == 0 {
			break
		}
		// A life that began on a dropped day is in a later one.
		n, _ := slices.BinarySearch(missing, days[i].LastSeq+1)
		more, left, err := firstIn(ctx, r, &days[i], missing[:n], pick)
		if err != nil {
			return nil, err
		}
		found, missing = append(found, more...), append(left, missing[n:]...)
	}
	return found, nil
}

// firstByDay looks for each life in the first day that can have it, in several days at once. It gives the lives that are not there.
func firstByDay[T any](ctx context.Context, r *Record, days []Day, wanted []int64, pick func(int64, patch.Doc) (T, bool)) (found []T, missing []int64, err error) {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	foundIn, missingIn := make([][]T, len(days)), make([][]int64, len(days))
	for i := range days {
		n, _ := slices.BinarySearch(wanted, days[i].LastSeq+1)
		ids := wanted[:n]
		wanted = wanted[n:]
		work.Go(func() (err error) {
			foundIn[i], missingIn[i], err = firstIn(ctx, r, &days[i], ids, pick)
			return err
		})
	}
	err = work.Wait()
	return slices.Concat(foundIn...), slices.Concat(missingIn...), err
}

// firstIn looks into one day. It gives the lives that have no version there.
func firstIn[T any](ctx context.Context, r *Record, d *Day, ids []int64, pick func(int64, patch.Doc) (T, bool)) (found []T, missing []int64, err error) {
	for chunk := range slices.Chunk(ids, relationsChunk) {
		more, left, err := firstOf(ctx, r, d, chunk, pick)
		if err != nil {
			return nil, nil, fmt.Errorf("look into %s: %w", d.Day.Format(time.DateOnly), err)
		}
		found, missing = append(found, more...), append(missing, left...)
	}
	slices.Sort(missing)
	return found, missing, nil
}

func firstOf[T any](ctx context.Context, r *Record, d *Day, ids []int64, pick func(int64, patch.Doc) (T, bool)) (found []T, missing []int64, err error) {
	rows, err := r.pool.Query(ctx, `
		SELECT o.id, k.object::text
		FROM unnest($2::bigint[]) AS o (id)
		LEFT JOIN LATERAL (
			SELECT object FROM kuberewind.record_deltas
			WHERE cluster = $1 AND object_id = o.id AND object IS NOT NULL AND observed_at BETWEEN $3 AND $4
			ORDER BY seq LIMIT 1
		) AS k ON true`, r.cluster.Number, ids, d.FirstAt, d.LastAt)
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
		if picked, ok := pick(id, patch.Doc(object)); ok {
			found = append(found, picked)
		}
	}
	return found, missing, rows.Err()
}

// relationOf reads the text as it was stored, which is canonical.
func relationOf(object patch.Doc) (r Relation, ok bool) {
	r.Owners = owner.UIDs(object)
	// An object with one of these is an Event, of either group. No other kind of Kubernetes has them.
	involved, _ := textAt(object, "/involvedObject/uid")
	regarding, _ := textAt(object, "/regarding/uid")
	r.About = cmp.Or(involved, regarding)
	return r, len(r.Owners) > 0 || r.About != ""
}
