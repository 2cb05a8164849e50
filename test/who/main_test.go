// Package who_test is the judge of the field manager that the record names. make who runs it on a live control plane; make test repeats it on
// the committed recording.
package who_test

import (
	"context"
	"io"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/internal/scene"
	"github.com/kuberewind/kuberewind/test/who/judge"
)

func TestMain(m *testing.M) { recordertest.Main(m, "recorder") }

// deltas reads what the record says. The results of patches only name the classes of deltas that join no request.
func deltas(ctx context.Context, t *testing.T, db *pgx.Conn) []judge.Delta {
	t.Helper()
	rows, err := db.Query(ctx, `
		SELECT seq, uid, resource_version::bigint, api_group, resource, coalesce(namespace, ''), name, type, observed_at,
			coalesce(manager, ''), coalesce(manager_evidence, ''), coalesce(manager_hint, ''), coalesce(patch::text, ''),
			CASE WHEN source <> 'watch' THEN 'listed'
				WHEN type <> 'Updated' THEN ''
				WHEN resource = 'pods' AND patch @> '[{"op": "add", "path": "/spec/nodeName"}]' THEN 'binding'
				WHEN patch @> '[{"path": "/metadata/deletionTimestamp"}]' THEN 'delete request'
				WHEN patch::text LIKE '%EvictionByEvictionAPI%' THEN 'eviction'
				ELSE '' END
		FROM kuberewind.deltas ORDER BY seq`)
	require.NoError(t, err)
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (d judge.Delta, err error) {
		err = row.Scan(&d.Seq, &d.UID, &d.RV, &d.Group, &d.Resource.Name, &d.Namespace, &d.Name, &d.Type, &d.Observed, &d.Manager, &d.Evidence, &d.Hint, &d.Patch, &d.What)
		return d, err
	})
	require.NoError(t, err)
	return all
}

// requireJudged prints the figures, and fails if the record does.
func requireJudged(t *testing.T, audit io.Reader, all []judge.Delta) judge.Verdict {
	t.Helper()
	log, err := judge.ReadAudit(audit)
	require.NoError(t, err)
	v := judge.Judge(log, all, scene.Users())
	require.NoError(t, v.Print(t.Output()))
	require.NoError(t, v.Err())
	return v
}
