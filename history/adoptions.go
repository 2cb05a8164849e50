package history

import (
	"context"
	"fmt"
	"iter"

	"github.com/kuberewind/kuberewind/internal/owner"
	"github.com/kuberewind/kuberewind/patch"
)

// Adoptions gives, of lives, the owners that a version after a seq brought which was not the first on record. A life comes once for each such version.
// An index holds the rows that can have brought them; no other row is read, and no object is folded. A day whose partition is gone has none.
func (k Kinship) Adoptions(ctx context.Context, lives []Life, after int64) iter.Seq2[Relation, error] {
	return func(yield func(Relation, error) bool) {
		if err := k.adoptions(ctx, lives, after, func(found Relation) bool { return yield(found, nil) }); err != nil {
			yield(Relation{}, fmt.Errorf("read which objects of the record were adopted: %w", err))
		}
	}
}

// bringsOwners is the condition of the index deltas_by_owners, word for word: else PostgreSQL would read all deltas.
const bringsOwners = `seq <> object_id AND (patch @? '$[*].path ? (@ starts with "/metadata/ownerReferences")' OR patch IS NULL AND object IS NOT NULL)`

// adoptions takes a row without a patch as a keyframe that holds the owners of its time.
func (k Kinship) adoptions(ctx context.Context, lives []Life, after int64, give func(Relation) bool) error {
	if len(lives) == 0 {
		return nil
	}
	byID := make(map[int64]Life, len(lives))
	for _, l := range lives {
		byID[l.ObjectID] = l
	}
	days, err := k.view.daysFrom(ctx, after, wholeSeq)
	if err != nil || len(days) == 0 {
		return err
	}
	rows, err := k.view.db.Query(ctx, `
		SELECT object_id, patch::text, CASE WHEN patch IS NULL THEN object::text END FROM kuberewind.record_deltas
		WHERE cluster = $1 AND seq > $2 AND observed_at >= $3 AND `+bringsOwners, k.view.cluster.Number, after, days[0].FirstAt)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var change, object pgText
		if err := rows.Scan(&id, &change, &object); err != nil {
			return err
		}
		life, wanted := byID[id]
		if !wanted {
			continue
		}
		if owners := ownersBrought(change, object); len(owners) > 0 && !give(Relation{Life: life, Owners: owners}) {
			return nil
		}
	}
	return rows.Err()
}

func ownersBrought(change, object pgText) []string {
	if change != nil {
		return ownersIn(change)
	}
	return owner.UIDs(patch.Doc(object))
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
