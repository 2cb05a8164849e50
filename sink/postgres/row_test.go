package postgres

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/chain"
)

func TestARowReadsBackAsItWasCopied(t *testing.T) {
	for name, of := range map[string]row{
		"a manager that is not judged": {Delta: chain.Delta{Manager: "kubectl"}},
		"a manager that is proved":     {Delta: chain.Delta{Manager: "kubectl", Evidence: 1, Subresource: "status"}},
		"no manager, with a hint":      {Delta: chain.Delta{Evidence: 3, Hint: "helm"}},
	} {
		t.Run(name, func(t *testing.T) {
			db := newDatabase(t)
			db.exec(t, "SELECT kuberewind.ensure_day('"+noon.Format(time.DateOnly)+"')")
			of.Seq, of.ObjectID, of.Stream, of.Kind, of.Source, of.RV, of.Version = 1, 1, 2, 3, 4, "5", "v1"
			of.Observed, of.Occurred = noon.UnixMicro(), noon.UnixMicro()-1
			var c copyBuffer
			c.begin()
			of.copyTo(&c, 7)
			c.end()
			conn, err := db.admin.Acquire(t.Context())
			require.NoError(t, err)
			defer conn.Release()
			_, err = conn.Conn().PgConn().CopyFrom(t.Context(), bytes.NewReader(c.b), "COPY kuberewind.deltas_data ("+deltaColumns+") FROM STDIN (FORMAT binary)")
			require.NoError(t, err)
			var got row
			var observed, occurred time.Time
			var digest []byte
			err = conn.QueryRow(t.Context(), `
				SELECT seq, object_id, stream, observed_at, occurred_at, type, source, coalesce(manager_evidence, 0), rv, version,
					coalesce(manager, ''), coalesce(manager_hint, ''), coalesce(subresource, ''), digest FROM kuberewind.deltas_data WHERE cluster = 7`).
				Scan(&got.Seq, &got.ObjectID, &got.Stream, &observed, &occurred, &got.Kind, &got.Source, &got.Evidence, &got.RV, &got.Version,
					&got.Manager, &got.Hint, &got.Subresource, &digest)
			require.NoError(t, err)
			got.Observed, got.Occurred = observed.UnixMicro(), occurred.UnixMicro()
			copy(got.Digest[:], digest)
			require.Equal(t, of, got)
		})
	}
}

func TestALifeReadsBackAsItWasCopied(t *testing.T) {
	db := newDatabase(t)
	for id, owners := range [][]string{nil, {"one"}, {"controller", "", "ünicode"}} {
		of := life{Life: chain.Life{ObjectID: int64(id), Stream: 2, Namespace: "shop", Name: "web", UID: "uid"}, owners: owners}
		var c copyBuffer
		c.begin()
		of.copyTo(&c, 7)
		c.end()
		conn, err := db.admin.Acquire(t.Context())
		require.NoError(t, err)
		defer conn.Release()
		_, err = conn.Conn().PgConn().CopyFrom(t.Context(), bytes.NewReader(c.b), "COPY kuberewind.lives ("+lifeColumns+") FROM STDIN (FORMAT binary)")
		require.NoError(t, err)
		var got life
		err = conn.QueryRow(t.Context(), "SELECT object_id, stream, namespace, name, uid, owners FROM kuberewind.lives WHERE cluster = 7 AND object_id = $1", id).
			Scan(&got.ObjectID, &got.Stream, &got.Namespace, &got.Name, &got.UID, &got.owners)
		require.NoError(t, err)
		require.Equal(t, of, got)
	}
}
