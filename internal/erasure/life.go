package erasure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/chain"
	"github.com/kuberewind/kuberewind/internal/fold"
	"github.com/kuberewind/kuberewind/internal/owner"
	"github.com/kuberewind/kuberewind/patch"
)

// rewritten is a delta without the value.
type rewritten struct {
	chain.ErasedDelta
	observed             time.Time
	patch, object, exact []byte
	first                bool     // it is the first delta of its life
	owners               []string // the owners in the version, if it is the first
}

// stored is a delta on record.
type stored struct {
	seq                          int64
	observed                     time.Time
	kind                         int16
	rv                           string
	digest, patch, object, exact []byte
}

// rowsAtOnce bounds the rows of a life in memory. Versions of one object can have one or two megabytes.
const rowsAtOnce = 64

// life folds one life twice, with and without the value. It calls change for each row that differs.
func (e *erasing) life(ctx context.Context, db querier, id int64, change func(context.Context, *rewritten) error) error {
	object := Object{}
	var group string
	err := db.QueryRow(ctx, `
		SELECT s.resource, s.api_group, l.namespace, l.name, l.uid FROM kuberewind.lives l JOIN kuberewind.streams s ON s.cluster = l.cluster AND s.stream = l.stream
		WHERE l.cluster = $1 AND l.object_id = $2`, e.options.Cluster, id).Scan(&object.Resource, &group, &object.Namespace, &object.Name, &object.UID)
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("there is no life of object %d; replay verify says more", id)
	}
	if err != nil {
		return err
	}
	if group != "" {
		object.Resource += "." + group
	}
	w := folding{value: e.value}
	var last int16
	for after := id - 1; ; {
		rows, err := e.rows(ctx, db, id, after)
		if err != nil {
			return err
		}
		if len(rows) == 0 {
			break
		}
		for i := range rows {
			d := &rows[i]
			after, last = d.seq, d.kind
			changed, err := w.row(d)
			if err != nil {
				return fmt.Errorf("seq %d of %s %s/%s: %w; replay verify says more", d.seq, object.Resource, object.Namespace, object.Name, err)
			}
			if changed == nil {
				continue
			}
			if changed.first = d.seq == id; changed.first {
				changed.owners = owner.UIDs(w.clean)
			}
			if err := change(ctx, changed); err != nil {
				return err
			}
			e.note(&object, changed)
		}
	}
	if object.Deltas == 0 {
		return nil
	}
	if last != delta.NumberDeleted && !bytes.Equal(w.before, w.clean) {
		object.Holds = true
		object.Paths = places(w.before, w.clean)
	}
	e.report.Objects = append(e.report.Objects, object)
	return nil
}

func (e *erasing) note(object *Object, w *rewritten) {
	object.Deltas++
	e.report.Deltas++
	e.days[dayOf(w.observed)] = true
	if e.first == 0 || w.Seq < e.first {
		e.first = w.Seq
	}
}

func (e *erasing) rows(ctx context.Context, db querier, id, after int64) ([]stored, error) {
	rows, err := db.Query(ctx, `
		SELECT seq, observed_at, type, rv, digest, patch::text, object::text, exact FROM kuberewind.deltas_data
		WHERE cluster = $1 AND object_id = $2 AND seq > $3 ORDER BY seq LIMIT `+strconv.Itoa(rowsAtOnce), e.options.Cluster, id, after)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (d stored, err error) {
		return d, row.Scan(&d.seq, &d.observed, &d.kind, &d.rv, &d.digest, &d.patch, &d.object, &d.exact)
	})
}

// folding is the state of folding one life, after a row.
type folding struct {
	value         *value
	before, clean patch.Doc // the version on record, and without the value
}

// row folds the next row. It returns the row without the value, or nil if the row does not change.
func (f *folding) row(d *stored) (*rewritten, error) {
	doc, err := fold.Row{RV: d.rv, Patch: d.patch, Object: d.object, Exact: d.exact}.Checked(f.before, d.digest)
	if err != nil {
		return nil, err
	}
	clean, err := f.value.erased(doc)
	if err != nil {
		return nil, err
	}
	base, cleanBase := f.before, f.clean
	f.before, f.clean = doc, clean
	patched := d.patch != nil && (!bytes.Equal(base, cleanBase) || base == nil && f.value.suspected(d.patch))
	if bytes.Equal(doc, clean) && !patched {
		return nil, nil
	}
	w := &rewritten{ErasedDelta: chain.ErasedDelta{Seq: d.seq, After: patch.Digest(clean)}, observed: d.observed, patch: d.patch, object: d.object, exact: d.exact}
	copy(w.Before[:], d.digest)
	whole := d.object != nil
	if d.patch != nil {
		if w.patch, whole, err = f.patch(d, cleanBase, whole); err != nil {
			return nil, err
		}
	}
	if whole {
		w.object, w.exact = keyframe(clean)
	}
	return w, nil
}

// patch returns the patch between two versions without the value, and whether the row must also hold the whole object.
func (f *folding) patch(d *stored, base patch.Doc, whole bool) ([]byte, bool, error) {
	if base == nil {
		// This row is a keyframe, and the previous version was dropped.
		text, err := f.value.operations(d.patch)
		return text, whole, err
	}
	text, err := patch.Diff(fold.Rebased(base, d.rv), f.clean)
	if err != nil {
		return nil, false, err
	}
	safe, replaced := patch.SafeForSQL(text)
	if safe[0] != '[' {
		return nil, true, nil // too large for jsonb
	}
	return safe, whole || replaced, nil
}

// keyframe returns the columns of a keyframe.
func keyframe(doc patch.Doc) (object, exact []byte) {
	object, changed := patch.SafeForSQL(doc)
	if changed {
		return object, doc
	}
	return object, nil
}

// maxPlaces is the maximum number of places that the report lists for one object.
const maxPlaces = 10

// places returns the paths at which two versions differ.
func places(from, to patch.Doc) []string {
	change, err := patch.Diff(from, to)
	if err != nil {
		return nil
	}
	paths := pathsOf(change)
	slices.Sort(paths)
	paths = slices.Compact(paths)
	return paths[:min(len(paths), maxPlaces)]
}
