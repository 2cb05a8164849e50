package history

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

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
	for i := range days {
		// What began on a later day is not in this one. What is not found began on a day that was dropped, and a later day has it.
		n, _ := slices.BinarySearch(wanted, days[i].lastSeq+1)
		missing := make([]int64, 0, len(wanted)-n)
		for chunk := range slices.Chunk(wanted[:n], relationsChunk) {
			left, more, err := r.relationsIn(ctx, &days[i], chunk, byID, give)
			if err != nil || !more {
				return err
			}
			missing = append(missing, left...)
		}
		wanted = append(missing, wanted[n:]...)
	}
	return nil
}

// relationsIn looks into one day. It gives the lives that have no version there.
func (r *Record) relationsIn(ctx context.Context, d *day, ids []int64, lives map[int64]Life, give func(Relation) bool) (missing []int64, more bool, err error) {
	rows, err := r.pool.Query(ctx, `
		SELECT o.id, k.object::text
		FROM unnest($2::bigint[]) AS o (id)
		LEFT JOIN LATERAL (
			SELECT object FROM kuberewind.record_deltas
			WHERE cluster = $1 AND object_id = o.id AND object IS NOT NULL AND observed_at BETWEEN $3 AND $4
			ORDER BY seq LIMIT 1
		) AS k ON true`, r.cluster.Number, ids, d.firstAt, d.lastAt)
	if err != nil {
		return nil, false, relationsFailed(d, err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var object pgText
		if err := rows.Scan(&id, &object); err != nil {
			return nil, false, relationsFailed(d, err)
		}
		if object == nil {
			missing = append(missing, id)
			continue
		}
		if found, ok := relationOf(patch.Doc(object)); ok {
			if found.Life = lives[id]; !give(found) {
				return nil, false, nil
			}
		}
	}
	slices.Sort(missing)
	if err := rows.Err(); err != nil {
		return nil, false, relationsFailed(d, err)
	}
	return missing, true, nil
}

func relationsFailed(d *day, err error) error {
	return fmt.Errorf("look into %s: %w", d.day.Format(time.DateOnly), err)
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
