package system_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
)

// row is one row of the view deltas, with the object as it folds to at that row.
type row struct {
	seq         int64
	typ, source string
	stream      streamName
	meta        meta
	patch       []byte
	object      []byte
	exact       []byte
	doc         patch.Doc
}

// readRecord reads every delta of the record and folds it. It needs only SQL, a JSON patch library and the page docs/sql.md,
// and none of our programs.
func readRecord(ctx context.Context, t *testing.T, db *pgx.Conn) []row {
	t.Helper()
	rows, err := db.Query(ctx, `
		SELECT seq, type, source, api_group, version, resource, namespace, name, uid, resource_version, patch::text, object::text, exact
		FROM kuberewind.deltas ORDER BY seq`)
	require.NoError(t, err)
	record, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (row, error) {
		var x row
		var patchText, objectText *string
		err := r.Scan(&x.seq, &x.typ, &x.source, &x.stream.group, &x.stream.version, &x.stream.resource,
			&x.meta.Namespace, &x.meta.Name, &x.meta.UID, &x.meta.ResourceVersion, &patchText, &objectText, &x.exact)
		if patchText != nil {
			x.patch = []byte(*patchText)
		}
		if objectText != nil {
			x.object = []byte(*objectText)
		}
		return x, err
	})
	require.NoError(t, err)
	living := map[string]patch.Doc{}
	for i := range record {
		x := &record[i]
		require.EqualValues(t, i+1, x.seq, "the numbers of deltas have no hole")
		life := x.stream.resource + x.stream.group + x.meta.UID
		require.NoError(t, x.fold(living[life]), "fold seq %d: %s %s", x.seq, x.typ, x.meta)
		living[life] = x.doc
	}
	return record
}

// fold makes doc of the version before.
func (x *row) fold(before patch.Doc) error {
	var err error
	switch {
	case x.exact != nil:
		x.doc = x.exact
	case x.object != nil:
		x.doc, err = patch.Canonical(x.object)
	case x.source == "inferred":
		x.doc = before
	case before == nil:
		return errors.New("there is no version before")
	default:
		x.doc, err = x.applied(before)
	}
	return err
}

// applied uses another implementation than the writer's.
func (x *row) applied(before patch.Doc) (patch.Doc, error) {
	steps, err := jsonpatch.DecodePatch(x.patch)
	if err != nil {
		return nil, err
	}
	rv := fmt.Sprintf(`[{"op":"replace","path":"/metadata/resourceVersion","value":%q}]`, x.meta.ResourceVersion)
	first, err := jsonpatch.DecodePatch([]byte(rv))
	if err != nil {
		return nil, err
	}
	text, err := append(first, steps...).Apply(before)
	if err != nil {
		return nil, err
	}
	return patch.Canonical(text)
}
