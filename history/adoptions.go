package history

import (
	"context"
	"fmt"
	"iter"

	"github.com/kuberewind/kuberewind/internal/owner"
	"github.com/kuberewind/kuberewind/patch"
)

// Adoptions yields the owners that later versions of lives brought: versions after a seq that are not the first of their
// life. It yields a life once for each such version. An index holds the candidate rows, so Adoptions reads no other row and
// folds no object. It yields nothing from a day whose partition is gone.
func (k Kinship) Adoptions(ctx context.Context, lives []Life, after int64) iter.Seq2[Relation, error] {
	return func(yield func(Relation, error) bool) {
		if err := k.adoptions(ctx, lives, after, func(found Relation) bool { return yield(found, nil) }); err != nil {
			yield(Relation{}, fmt.Errorf("read which objects of the record were adopted: %w", err))
		}
	}
}

// bringsOwners is the condition of the index deltas_by_owners, word for word. With other words, PostgreSQL would read all
// deltas.
const bringsOwners = `seq <> object_id AND (patch @? '$[*].path ? (@ starts with "/metadata/ownerReferences")' OR patch IS NULL AND object IS NOT NULL)`

// adoptions takes a row without a patch as a keyframe that holds the owners at its time.
func (k Kinship) adoptions(ctx context.Context, lives []Life, after int64, give func(Relation) bool) error {
	if len(lives) == 0 {
		return nil
	}
	byID := make(map[int64]Life, len(lives))
	for _, l := range lives {
		byID[l.ObjectID] = l
	}
	days, err := k.view.daysFrom(ctx, after, maxSeq)
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

// ownersIn returns the UIDs that a patch writes into ownerReferences. It returns none for an unreadable patch: a reader of
// that delta reports it.
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
