package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/owner"
)

// A lifeRow is what lives says of an object that begins or ends in a batch.
type lifeRow struct {
	stream     int32
	deletedSeq int64
	owners     []string
}

// livesOf reads the lives that begin or end in a batch.
func (v *recordWalk) livesOf(ctx context.Context, batch []history.Row) (map[int64]lifeRow, error) {
	var ids []int64
	for i := range batch {
		if batch[i].Seq == batch[i].ObjectID || batch[i].Type == delta.NumberDeleted {
			ids = append(ids, batch[i].ObjectID)
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	rows, err := v.record.Pool().Query(ctx, `
		SELECT object_id, stream, coalesce(deleted_seq, 0), owners FROM kuberewind.record_lives WHERE cluster = $1 AND object_id = ANY ($2::bigint[])`,
		v.record.Cluster().Number, ids)
	if err != nil {
		return nil, fmt.Errorf("read the lives of the record: %w", err)
	}
	defer rows.Close()
	lives := make(map[int64]lifeRow, len(ids))
	for rows.Next() {
		var id int64
		var l lifeRow
		if err := rows.Scan(&id, &l.stream, &l.deletedSeq, &l.owners); err != nil {
			return nil, fmt.Errorf("read the lives of the record: %w", err)
		}
		lives[id] = l
	}
	return lives, rows.Err()
}

// life compares a row that begins or ends a life with lives.
func (v *recordWalk) life(w *history.Row, lives map[int64]lifeRow) error {
	l, ok := lives[w.ObjectID]
	if w.Seq == w.ObjectID {
		switch {
		case !ok:
			if err := v.found(CheckLives, w.Seq, "it begins an object of which there is no life"); err != nil {
				return err
			}
		case l.stream != w.Stream:
			if err := v.found(CheckLives, w.Seq, "its life belongs to stream %d, and it to stream %d", l.stream, w.Stream); err != nil {
				return err
			}
		}
		if ok {
			if err := v.owners(w, l.owners); err != nil {
				return err
			}
		}
	}
	if w.Type != delta.NumberDeleted {
		return nil
	}
	v.ended++
	delete(v.objects, w.ObjectID)
	if ok && l.deletedSeq != w.Seq {
		return v.found(CheckLives, w.Seq, "it ends object %d, and its life says that seq %d does", w.ObjectID, l.deletedSeq)
	}
	return nil
}

// owners compares an object's recorded owners with its first version, which was just folded.
func (v *recordWalk) owners(w *history.Row, noted []string) error {
	o := v.objects[w.ObjectID]
	if o == nil || o.doc == nil {
		return nil // it does not fold, which was reported
	}
	doc, err := s2.Decode(nil, o.doc)
	if err != nil {
		return err // of our own memory
	}
	if first := owner.UIDs(doc); !slices.Equal(first, noted) {
		return v.found(CheckLives, w.Seq, "its life has the owners %q, and its first version has %q", noted, first)
	}
	return nil
}

// lives compares all lives with the rows: living objects are held, and the others ended with a row.
func (v *recordWalk) lives(ctx context.Context) error {
	alive := make(map[int64]bool, len(v.objects))
	var born, ended int64
	for l, err := range v.record.Lives(ctx, history.LifeQuery{}) {
		if err != nil {
			return err
		}
		if l.ObjectID > v.survey.LastSeq {
			continue
		}
		v.counts.Lives++
		if l.ObjectID >= v.survey.FirstSeq {
			born++
		}
		if l.DeletedSeq != 0 && l.DeletedSeq <= v.survey.LastSeq {
			if l.DeletedSeq >= v.survey.FirstSeq {
				ended++
			}
			if v.objects[l.ObjectID] != nil {
				if err := v.found(CheckLives, l.ObjectID, "its life ended with seq %d, and no such delta ends it", l.DeletedSeq); err != nil {
					return err
				}
			}
			continue
		}
		alive[l.ObjectID] = true
		if v.objects[l.ObjectID] == nil && l.ObjectID >= v.survey.FirstSeq {
			if err := v.found(CheckLives, l.ObjectID, "it is alive by its life, and by its deltas it has ended, or there are none"); err != nil {
				return err
			}
		}
	}
	for id := range v.objects {
		if !alive[id] && v.counts.Findings == 0 {
			if err := v.found(CheckLives, id, "it is alive by its deltas, and there is no life of it"); err != nil {
				return err
			}
		}
	}
	if v.counts.Findings == 0 && (born != v.born || ended != v.ended) {
		return v.found(CheckLives, 0, "%d lives began and %d ended, and by the deltas it was %d and %d", born, ended, v.born, v.ended)
	}
	return nil
}

// living compares what a recorder loads when it starts with the lives that have not ended. Both are written in one transaction, and read in one statement.
func (v *recordWalk) living(ctx context.Context) error {
	rows, err := v.record.Pool().Query(ctx, `
		SELECT coalesce(l.object_id, a.object_id), l.object_id IS NOT NULL
		FROM (SELECT stream, object_id FROM kuberewind.record_lives WHERE cluster = $1 AND deleted_seq IS NULL) l
		FULL JOIN (SELECT stream, object_id FROM kuberewind.record_living WHERE cluster = $1) a USING (stream, object_id)
		WHERE l.object_id IS NULL OR a.object_id IS NULL ORDER BY 1, 2`, v.record.Cluster().Number)
	if err != nil {
		return fmt.Errorf("read what lives: %w", err)
	}
	var id int64
	var lives bool
	_, err = pgx.ForEachRow(rows, []any{&id, &lives}, func() error {
		if lives {
			return v.found(CheckLives, id, "it is alive by its life, and a recorder that starts would not find it: the table living does not have it")
		}
		return v.found(CheckLives, id, "a recorder that starts would take it for alive: the table living has it, and its life has ended, or is none of that stream")
	})
	if err != nil {
		return fmt.Errorf("read what lives: %w", err)
	}
	return nil
}

// errOld says that a patch cannot be undone.
var errOld = errors.New("it has no member old where something is removed or replaced")

// withTests puts a test of the old value before each operation that names one. Neither the chain nor a fold notices a forged
// old value, because a patch applies without it.
func withTests(text []byte) ([]byte, error) {
	var operations []map[string]json.RawMessage
	if err := json.Unmarshal(text, &operations); err != nil {
		return nil, err
	}
	tested := make([]map[string]json.RawMessage, 0, 2*len(operations))
	for _, o := range operations {
		switch string(o["op"]) {
		case `"replace"`, `"remove"`:
			old, ok := o["old"]
			if !ok {
				return nil, errOld
			}
			tested = append(tested, map[string]json.RawMessage{"op": json.RawMessage(`"test"`), "path": o["path"], "value": old})
		}
		tested = append(tested, o)
	}
	return json.Marshal(tested)
}
