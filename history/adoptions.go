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
	if len(lives) == 0 {
		return nil
	}
	lives = slices.SortedFunc(slices.Values(lives), func(a, b Life) int { return cmp.Compare(a.ObjectID, b.ObjectID) })
	byID := make(map[int64]Life, len(lives))
	for _, l := range lives {
		byID[l.ObjectID] = l
	}
	days, err := r.daysFrom(ctx, r.pool, after, wholeSeq)
	if err != nil {
		return err
	}
	work, ctx := errgroup.WithContext(ctx)
	work.SetLimit(runtime.GOMAXPROCS(0))
	found := make([][]Relation, len(days))
	for i := range days {
		work.Go(func() (err error) {
			found[i], err = r.adoptionsOn(ctx, &days[i], livingOn(&days[i], lives), after, byID)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return err
	}
	for _, each := range slices.Concat(found...) {
		if !give(each) {
			return nil
		}
	}
	return nil
}

// livingOn gives the lives, of some in the order of their begin, that can have a delta on a day.
func livingOn(d *day, lives []Life) (ids []int64) {
	for i := range lives {
		switch l := &lives[i]; {
		case l.ObjectID > d.lastSeq:
			return ids
		case l.DeletedSeq == 0 || l.DeletedSeq >= d.firstSeq:
			ids = append(ids, l.ObjectID)
		}
	}
	return ids
}

func (r *Record) adoptionsOn(ctx context.Context, d *day, ids []int64, after int64, lives map[int64]Life) (found []Relation, err error) {
	for chunk := range slices.Chunk(ids, relationsChunk) {
		more, err := r.adoptionsIn(ctx, d, chunk, after, lives)
		if err != nil {
			return nil, fmt.Errorf("look into %s: %w", d.day.Format(time.DateOnly), err)
		}
		found = append(found, more...)
	}
	return found, nil
}

// adoptionsIn looks into one day. A row without a patch is a keyframe that holds the owners of its time. Each life is looked up by itself: asked for
// many at once, PostgreSQL would read the whole day.
func (r *Record) adoptionsIn(ctx context.Context, d *day, ids []int64, after int64, lives map[int64]Life) (all []Relation, err error) {
	rows, err := r.pool.Query(ctx, `
		SELECT o.id, k.patch, k.object
		FROM unnest($2::bigint[]) AS o (id)
		CROSS JOIN LATERAL (
			SELECT patch::text, CASE WHEN patch IS NULL THEN object::text END AS object
			FROM kuberewind.record_deltas
			WHERE cluster = $1 AND object_id = o.id AND seq > $3 AND seq <> o.id AND observed_at BETWEEN $4 AND $5
				AND (patch @? '$[*].path ? (@ starts with "/metadata/ownerReferences")' OR patch IS NULL AND object IS NOT NULL)
			OFFSET 0
		) AS k`,
		r.cluster.Number, ids, after, d.firstAt, d.lastAt)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var change, object pgText
		if err := rows.Scan(&id, &change, &object); err != nil {
			return nil, err
		}
		var found Relation
		if change != nil {
			found.Owners = ownersIn(change)
		} else {
			found, _ = relationOf(patch.Doc(object))
		}
		if found.Life, found.About = lives[id], ""; len(found.Owners) > 0 {
			all = append(all, found)
		}
	}
	return all, rows.Err()
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
