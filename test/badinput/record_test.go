package badinput_test

import (
	"fmt"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/patch"
)

// archive reads the record as an auditor does.
type archive struct {
	t    *testing.T
	conn *pgx.Conn
}

func open(t *testing.T, db *pgtest.Database) *archive {
	t.Helper()
	return &archive{t: t, conn: db.Connect(t)}
}

// awaitCount waits for so many deltas of a resource. A table of another system can only be polled.
func (a *archive) awaitCount(r *resource, want int) {
	a.t.Helper()
	a.await(fmt.Sprintf("%d deltas of %s", want, r.plural),
		`SELECT count(*) >= $2 FROM kuberewind.deltas WHERE resource = $1`, r.plural, want)
}

// await waits until a question is answered with true.
func (a *archive) await(what, sql string, args ...any) {
	a.t.Helper()
	deadline := time.After(patience)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		var yes bool
		require.NoError(a.t, a.conn.QueryRow(a.t.Context(), sql, args...).Scan(&yes), what)
		if yes {
			return
		}
		select {
		case <-ticker.C:
		case <-deadline:
			a.t.Fatalf("not on record after %s: %s", patience, what)
		}
	}
}

// row is one row of the view deltas.
type row struct {
	source, patch, object string
	exact                 []byte
	version
}

// history is what the record holds of a resource, each version folded with another implementation than the writer's.
func (a *archive) history(r *resource) []row {
	a.t.Helper()
	rows, err := a.conn.Query(a.t.Context(), `
		SELECT source, coalesce(patch::text, ''), coalesce(object::text, ''), exact, type, namespace, name, uid, resource_version
		FROM kuberewind.deltas WHERE api_group = $1 AND resource = $2 ORDER BY seq`, r.group, r.plural)
	require.NoError(a.t, err)
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (x row, err error) {
		err = r.Scan(&x.source, &x.patch, &x.object, &x.exact, &x.Type, &x.Namespace, &x.Name, &x.UID, &x.RV)
		return x, err
	})
	require.NoError(a.t, err)
	newest := map[string]patch.Doc{}
	for i := range all {
		x := &all[i]
		life := x.Namespace + "/" + x.Name + "/" + x.UID
		doc, err := x.fold(newest[life])
		require.NoError(a.t, err, "fold row %d: %s %s", i+1, x.Type, life)
		newest[life], x.Doc = doc, string(doc)
	}
	return all
}

func (x *row) fold(before patch.Doc) (patch.Doc, error) {
	switch {
	case x.exact != nil:
		return x.exact, nil
	case x.object != "":
		return patch.Canonical([]byte(x.object))
	case x.source == "inferred":
		return before, nil
	}
	steps, err := jsonpatch.DecodePatch([]byte(x.patch))
	if err != nil {
		return nil, err
	}
	if x.RV == "" {
		text, err := steps.Apply(before)
		if err != nil {
			return nil, err
		}
		return patch.Canonical(text)
	}
	rv, err := jsonpatch.DecodePatch(fmt.Appendf(nil, `[{"op":"replace","path":"/metadata/resourceVersion","value":%q}]`, x.RV))
	if err != nil {
		return nil, err
	}
	text, err := append(rv, steps...).Apply(before)
	if err != nil {
		return nil, err
	}
	return patch.Canonical(text)
}

// requireHistory checks the record of a resource: it has all of it, once, in order.
func (a *archive) requireHistory(r *resource, want ...[]version) {
	a.t.Helper()
	var flat []version
	for _, part := range want {
		flat = append(flat, part...)
	}
	history := a.history(r)
	got := make([]version, len(history))
	for i, x := range history {
		got[i] = x.version
	}
	require.Equal(a.t, flat, got)
}

// gap is one row of the view gaps.
type gap struct {
	Cause, Outcome string
	Counts         [4]int // appeared, changed, vanished, unchanged
	detail         string
	from, to       string
}

// gaps are those of a resource, in their order.
func (a *archive) gaps(r *resource) []gap {
	a.t.Helper()
	rows, err := a.conn.Query(a.t.Context(), `
		SELECT cause, coalesce(outcome, 'open'), detail, coalesce(from_rv, ''), coalesce(to_rv, ''),
			coalesce(appeared, 0), coalesce(changed, 0), coalesce(vanished, 0), coalesce(unchanged, 0)
		FROM kuberewind.gaps WHERE api_group = $1 AND resource = $2 ORDER BY gap`, r.group, r.plural)
	require.NoError(a.t, err)
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (g gap, err error) {
		err = r.Scan(&g.Cause, &g.Outcome, &g.detail, &g.from, &g.to, &g.Counts[0], &g.Counts[1], &g.Counts[2], &g.Counts[3])
		return g, err
	})
	require.NoError(a.t, err)
	return all
}

// strings are the rows of a question that gives one text each.
func (a *archive) strings(sql string, args ...any) []string {
	a.t.Helper()
	rows, err := a.conn.Query(a.t.Context(), sql, args...)
	require.NoError(a.t, err)
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(a.t, err)
	return texts
}

// requireGaps compares causes and outcomes, as cause:outcome.
func (a *archive) requireGaps(r *resource, want ...string) []gap {
	a.t.Helper()
	all := a.gaps(r)
	var got []string
	for _, g := range all {
		got = append(got, g.Cause+":"+g.Outcome)
	}
	require.Equal(a.t, want, got)
	return all
}
