package history

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/patch"
)

// Adoptions gives, of lives, the owners that a version after a seq brought which was not the first on record. A life comes once for each such version.
// The deltas of these lives are read, by an index; their objects are not folded. A day whose partition is gone has none.
func (r *Record) Adoptions(ctx context.Context, lives []Life, after int64) iter.Seq2[Relation, error] {
	return func(yield func(Relation, error) bool) {
		if err := r.adoptions(ctx, lives, after, func(found Relation) bool { return yield(found, nil) }); err != nil {
			yield(Relation{}, fmt.Errorf("read which objects of the record were adopted: %w", err))
		}
	}
}

func (r *Record) adoptions(ctx context.Context, lives []Life, after int64, give func(Relation) bool) error {
	byID, ids := make(map[int64]Life, len(lives)), make([]int64, 0, len(lives))
	for _, l := range lives {
		byID[l.ObjectID] = l
		ids = append(ids, l.ObjectID)
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	days, err := r.daysFrom(ctx, r.pool, after, wholeSeq)
	if err != nil {
		return err
	}
	for i := range days {
		// What began on a later day is not in this one.
		n, _ := slices.BinarySearch(ids, days[i].lastSeq+1)
		for chunk := range slices.Chunk(ids[:n], relationsChunk) {
			if more, err := r.adoptionsIn(ctx, &days[i], chunk, after, byID, give); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// adoptionsIn looks into one day. A row without a patch is a keyframe that holds the owners of its time.
func (r *Record) adoptionsIn(ctx context.Context, d *day, ids []int64, after int64, lives map[int64]Life, give func(Relation) bool) (more bool, err error) {
	rows, err := r.pool.Query(ctx, `
		SELECT object_id, patch::text, CASE WHEN patch IS NULL THEN object::text END
		FROM kuberewind.record_deltas
		WHERE cluster = $1 AND object_id = ANY ($2::bigint[]) AND seq > $3 AND seq <> object_id AND observed_at BETWEEN $4 AND $5
			AND (patch @? '$[*].path ? (@ starts with "/metadata/ownerReferences")' OR patch IS NULL AND object IS NOT NULL)`,
		r.cluster.Number, ids, after, d.firstAt, d.lastAt)
	if err != nil {
		return false, adoptionsFailed(d, err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var change, object pgText
		if err := rows.Scan(&id, &change, &object); err != nil {
			return false, adoptionsFailed(d, err)
		}
		var found Relation
		if change != nil {
			found.Owners = ownersIn(change)
		} else {
			found, _ = relationOf(patch.Doc(object))
		}
		if found.Life, found.About = lives[id], ""; len(found.Owners) > 0 && !give(found) {
			return false, nil
		}
	}
	if err := rows.Err(); err != nil {
		return false, adoptionsFailed(d, err)
	}
	return true, nil
}

func adoptionsFailed(d *day, err error) error {
	return fmt.Errorf("look into %s: %w", d.day.Format(time.DateOnly), err)
}

// ownersIn are the UIDs that a patch writes into ownerReferences. A patch that cannot be read names none: a reading of its delta says so.
func ownersIn(text []byte) (owners []string) {
	change, err := patch.Canonical(text)
	if err != nil {
		return nil
	}
	note := func(value patch.Doc, pointer string) {
		if uid, ok := textAt(value, pointer); ok {
			owners = append(owners, uid)
		}
	}
	for op := range patch.Operations(change) {
		if len(op.Path) < 2 || op.Path[0] != "metadata" || op.Path[1] != "ownerReferences" {
			continue
		}
		switch {
		case len(op.Path) == 2: // the list
			for _, owner := range patch.Members(op.Value) {
				note(owner, "/uid")
			}
		case len(op.Path) == 3: // an owner
			note(op.Value, "/uid")
		case op.Path[3] == "uid":
			note(op.Value, "")
		}
	}
	return owners
}
