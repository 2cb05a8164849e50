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

// A lifeRow is the row of lives of an object that begins or ends in a batch.
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

// life compares a row that begins or ends a life with the row of lives.
func (v *recordWalk) life(w *history.Row, lives map[int64]lifeRow) error {
	l, ok := lives[w.ObjectID]
	if w.Seq == w.ObjectID {
		switch {
		case !ok:
			if err := v.found(CheckLives, w.Seq, "it begins an object that has no life"); err != nil {
				return err
			}
		case l.stream != w.Stream:
			if err := v.found(CheckLives, w.Seq, "its life belongs to stream %d, but it belongs to stream %d", l.stream, w.Stream); err != nil {
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
		return v.found(CheckLives, w.Seq, "it ends object %d, but its life says that seq %d does", w.ObjectID, l.deletedSeq)
	}
	return nil
}

// owners compares the recorded owners of an object with those of its first version, which was just folded.
func (v *recordWalk) owners(w *history.Row, noted []string) error {
	o := v.objects[w.ObjectID]
	if o == nil || o.doc == nil {
		return nil // it does not fold; another finding reports that
	}
	doc, err := s2.Decode(nil, o.doc)
	if err != nil {
		return err // corruption of our own memory
	}
	if first := owner.UIDs(doc); !slices.Equal(first, noted) {
		return v.found(CheckLives, w.Seq, "its life has the owners %q, but its first version has %q", noted, first)
	}
	return nil
}

// lives compares all lives with the rows. Living objects must be in v.objects. The other lives must have ended with a row.
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
				if err := v.found(CheckLives, l.ObjectID, "its life ended with seq %d, but no such delta ends it", l.DeletedSeq); err != nil {
					return err
				}
			}
			continue
		}
		alive[l.ObjectID] = true
		if v.objects[l.ObjectID] == nil && l.ObjectID >= v.survey.FirstSeq {
			if err := v.found(CheckLives, l.ObjectID, "its life has not ended, but its deltas end it, or are missing"); err != nil {
				return err
			}
		}
	}
	for id := range v.objects {
		if !alive[id] && v.counts.Findings == 0 {
			if err := v.found(CheckLives, id, "its deltas do not end it, but it has no life"); err != nil {
				return err
			}
		}
	}
	if v.counts.Findings == 0 && (born != v.born || ended != v.ended) {
		return v.found(CheckLives, 0, "%d lives began and %d ended, but by the deltas %d began and %d ended", born, ended, v.born, v.ended)
	}
	return nil
}

// living compares the objects that a starting recorder loads with the lives that have not ended. The recorder writes both
// in one transaction, and one statement reads both.
func (v *recordWalk) living(ctx context.Context) error {
	rows, err := v.record.Pool().Query(ctx, `
		SELECT coalesce(l.object_id, a.object_id), l.object_id IS NOT NULL
		FROM (SELECT stream, object_id FROM kuberewind.record_lives WHERE cluster = $1 AND deleted_seq IS NULL) l
		FULL JOIN (SELECT stream, object_id FROM kuberewind.record_living WHERE cluster = $1) a USING (stream, object_id)
		WHERE l.object_id IS NULL OR a.object_id IS NULL ORDER BY 1, 2`, v.record.Cluster().Number)
	if err != nil {
		return fmt.Errorf("read the living objects: %w", err)
	}
	var id int64
	var lives bool
	_, err = pgx.ForEachRow(rows, []any{&id, &lives}, func() error {
		if lives {
			return v.found(CheckLives, id, "its life has not ended, but a starting recorder would not find it: the table living lacks it")
		}
		return v.found(CheckLives, id, "a starting recorder would take it for alive: the table living has it, but its life has ended, or belongs to another stream")
	})
	if err != nil {
		return fmt.Errorf("read the living objects: %w", err)
	}
	return nil
}

// errOld says that a patch cannot be undone.
var errOld = errors.New("a remove or replace has no member old")

// withTests adds a test of the old value before each operation that names one. Without it, neither the chain nor a fold
// notices a forged old value, because the patch still applies.
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
