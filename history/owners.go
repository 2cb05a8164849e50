package history

import (
	"context"
	"fmt"
	"iter"
	"slices"
)

// Owners yields the owners of the lives that have any, as of their first version on record. The table of lives holds them,
// so Owners reads no version.
//
// There is one exception. If a life began before the first remaining delta, package verify cannot compare its owners.
// Owners then reads its first version on record.
func (k Kinship) Owners(ctx context.Context, lives []Life) iter.Seq2[Relation, error] {
	return func(yield func(Relation, error) bool) {
		if err := k.owners(ctx, lives, func(found Relation) bool { return yield(found, nil) }); err != nil {
			yield(Relation{}, fmt.Errorf("read owners of objects of the record: %w", err))
		}
	}
}

func (k Kinship) owners(ctx context.Context, lives []Life, give func(Relation) bool) error {
	extent, err := k.view.extent(ctx)
	if err != nil {
		return err
	}
	older, noted := byBegin(lives, extent.FirstSeq)
	going := true
	err = k.relations(ctx, older, func(found Relation) bool {
		found.About = ""
		going = len(found.Owners) == 0 || give(found)
		return going
	})
	for chunk := range slices.Chunk(noted, livesChunk) {
		if err != nil || !going {
			return err
		}
		err = k.ownersNoted(ctx, chunk, func(found Relation) bool { going = give(found); return going })
	}
	return err
}

// byBegin divides lives by whether they began before a seq.
func byBegin(lives []Life, seq int64) (before, since []Life) {
	for _, l := range lives {
		if l.ObjectID < seq {
			before = append(before, l)
		} else {
			since = append(since, l)
		}
	}
	return before, since
}

func (k Kinship) ownersNoted(ctx context.Context, lives []Life, give func(Relation) bool) error {
	byID, ids := make(map[int64]Life, len(lives)), make([]int64, 0, len(lives))
	for _, l := range lives {
		byID[l.ObjectID] = l
		ids = append(ids, l.ObjectID)
	}
	rows, err := k.view.db.Query(ctx, `
		SELECT object_id, owners FROM kuberewind.record_lives WHERE cluster = $1 AND object_id = ANY ($2::bigint[]) AND owners IS NOT NULL
		ORDER BY object_id`,
		k.view.cluster.Number, ids)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		var owners []string
		if err := rows.Scan(&id, &owners); err != nil {
			return err
		}
		if !give(Relation{Life: byID[id], Owners: owners}) {
			return nil
		}
	}
	return rows.Err()
}
