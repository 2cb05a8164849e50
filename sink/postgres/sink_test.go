package postgres

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/verify"
)

func TestVersionsOfAnObjectAreRecordedInOrderWithPatches(t *testing.T) {
	r := record(t, newDatabase(t))
	pods := r.pods()
	require.Empty(t, pods.Position())
	uid := newUID()
	v1 := made(t, "default", "web", uid, "11", `{"replicas":1}`)
	v2 := made(t, "default", "web", uid, "12", `{"replicas":3}`)
	v3 := made(t, "default", "web", uid, "13", `{"replicas":3,"gone":true}`)
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"), watched(pods, delta.Added, v1), watched(pods, delta.Updated, v2))
	r.commit(watched(pods, delta.Deleted, v3))

	history := r.history()
	require.Len(t, history, 3)
	require.Equal(t, v1.doc, history[0].Doc)
	require.Equal(t, v2.doc, history[1].Doc)
	require.Equal(t, v3.doc, history[2].Doc)
	require.True(t, history[0].HasObj)
	require.False(t, history[1].HasObj)
	require.Equal(t, `[{"op": "replace", "old": 1, "path": "/spec/replicas", "value": 3}]`,
		one[string](t, r.db, `SELECT patch::text FROM kuberewind.deltas WHERE seq = 2 AND cluster = $1`, r.cfg.ClusterName))
	require.Equal(t, int64(3), one[int64](t, r.db, `SELECT seq FROM kuberewind.ends WHERE cluster = $1`, r.cluster()))
	require.Zero(t, pods.Known().Len())
	require.Equal(t, verify.ChainReport{FirstBatch: 1, LastBatch: 2, Batches: 2, Deltas: 3, Anchored: true}, r.verify())
}

func TestTheSinkWorksAsTheWriterRole(t *testing.T) {
	r := record(t, newDatabase(t))
	var role string
	require.NoError(t, r.sink.cfg.Pool.QueryRow(context.Background(), "SELECT current_user").Scan(&role))
	require.Equal(t, "kuberewind_writer", role)
	_, err := r.sink.cfg.Pool.Exec(context.Background(), "DELETE FROM kuberewind.deltas_data")
	require.Equal(t, Permanent, ClassOf(err))
}
