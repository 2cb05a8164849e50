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

// Relations gives the relations of lives, of those that refer to another object. Each life costs one look into an index. A day whose partition is gone
// has none.
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
	if len(wanted) == 0 {
		return nil
	}
	slices.Sort(wanted)
	days, err := r.daysFrom(ctx, r.pool, 0, wholeSeq)
	if err != nil {
		return err
	}
	found, missing, err := r.relationsByDay(ctx, days, wanted, byID)
	if err != nil {
		return err
	}
	for i := range days {
		if len(missing) == 0 {
			break
		}
		// What began on a day that was dropped is in a later one.
		n, _ := slices.BinarySearch(missing, days[i].lastSeq+1)
		more, left, err := r.relationsIn(ctx, &days[i], missing[:n], byID)
		if err != nil {
			return err
		}
		found, missing = append(found, more...), append(left, missing[n:]...)
	}
	for _, each := range found {
		if !give(each) {
			return nil
		}
	}
	return nil
}

// relationsByDay looks for each life in the first day that can have it, in several days at once. It gives the lives that are not there.
func (r *Record) relationsByDay(ctx context.Context, days []day, wanted []int64, lives map[int64]Life) (found []Relation, missing []int64, err error) {
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	foundIn, missingIn := make([][]Relation, len(days)), make([][]int64, len(days))
	for i := range days {
		n, _ := slices.BinarySearch(wanted, days[i].lastSeq+1)
		ids := wanted[:n]
		wanted = wanted[n:]
		work.Go(func() (err error) {
			foundIn[i], missingIn[i], err = r.relationsIn(ctx, &days[i], ids, lives)
			return err
		})
	}
	err = work.Wait()
	return slices.Concat(foundIn...), slices.Concat(missingIn...), err
}

// relationsIn looks into one day. It gives the lives that have no version there.
func (r *Record) relationsIn(ctx context.Context, d *day, ids []int64, lives map[int64]Life) (found []Relation, missing []int64, err error) {
	for chunk := range slices.Chunk(ids, relationsChunk) {
		more, left, err := r.relationsOf(ctx, d, chunk, lives)
		if err != nil {
			return nil, nil, fmt.Errorf("look into %s: %w", d.day.Format(time.DateOnly), err)
		}
		found, missing = append(found, more...), append(missing, left...)
	}
	slices.Sort(missing)
	return found, missing, nil
}

func (r *Record) relationsOf(ctx context.Context, d *day, ids []int64, lives map[int64]Life) (found []Relation, missing []int64, err error) {
	rows, err := r.pool.Query(ctx, `
		SELECT o.id, k.object::text
		FROM unnest($2::bigint[]) AS o (id)
		LEFT JOIN LATERAL (
			SELECT object FROM kuberewind.record_deltas
			WHERE cluster = $1 AND object_id = o.id AND object IS NOT NULL AND observed_at BETWEEN $3 AND $4
			ORDER BY seq LIMIT 1
		) AS k ON true`, r.cluster.Number, ids, d.firstAt, d.lastAt)
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
		if relation, ok := relationOf(patch.Doc(object)); ok {
			relation.Life = lives[id]
			found = append(found, relation)
		}
	}
	return found, missing, rows.Err()
}

// relationOf reads the text as it was stored, which is canonical.
func relationOf(object patch.Doc) (r Relation, ok bool) {
	owners, _ := patch.Get(object, "/metadata/ownerReferences")
	for _, owner := range patch.Members(owners) {
		uid, _ := textAt(owner, "/uid")
		if controller, _ := patch.Get(owner, "/controller"); string(controller) == "true" {
			r.Owners = slices.Insert(r.Owners, 0, uid)
		} else {
			r.Owners = append(r.Owners, uid)
		}
	}
	// What has one of these is an Event, of either group. No other kind of Kubernetes has them.
	involved, _ := textAt(object, "/involvedObject/uid")
	regarding, _ := textAt(object, "/regarding/uid")
	r.About = cmp.Or(involved, regarding)
	return r, len(r.Owners) > 0 || r.About != ""
}
