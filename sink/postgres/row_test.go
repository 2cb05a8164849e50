package postgres

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestARowIsReadAsItWasCopied(t *testing.T) {
	for name, of := range map[string]row{
		"a manager that is not judged": {manager: "kubectl"},
		"a manager that is proved":     {manager: "kubectl", evidence: 1, subresource: "status"},
		"nobody, with a hint":          {evidence: 3, hint: "helm"},
	} {
		t.Run(name, func(t *testing.T) {
			db := newDatabase(t)
			db.exec(t, "SELECT kuberewind.ensure_day('"+noon.Format(time.DateOnly)+"')")
			of.seq, of.objectID, of.stream, of.kind, of.source, of.rv, of.version = 1, 1, 2, 3, 4, "5", "v1"
			of.observed, of.occurred = noon.UnixMicro(), noon.UnixMicro()-1
			var c copyBuffer
			c.begin()
			of.copyTo(&c, 7)
			c.end()
			conn, err := db.admin.Acquire(t.Context())
			require.NoError(t, err)
			defer conn.Release()
			_, err = conn.Conn().PgConn().CopyFrom(t.Context(), bytes.NewReader(c.b), "COPY kuberewind.deltas_data ("+deltaColumns+") FROM STDIN (FORMAT binary)")
			require.NoError(t, err)
			rows, err := conn.Query(t.Context(), fmt.Sprintf(selectDeltas, 7, 0, 0))
			require.NoError(t, err)
			got, err := pgx.CollectExactlyOneRow(rows, scanDelta)
			require.NoError(t, err)
			require.Equal(t, of, got)
		})
	}
}

func TestALifeIsReadAsItWasCopied(t *testing.T) {
	db := newDatabase(t)
	for id, owners := range [][]string{nil, {"one"}, {"controller", "", "ünicode"}} {
		of := life{objectID: int64(id), stream: 2, namespace: "shop", name: "web", uid: "uid", owners: owners}
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
			Scan(&got.objectID, &got.stream, &got.namespace, &got.name, &got.uid, &got.owners)
		require.NoError(t, err)
		require.Equal(t, of, got)
	}
}
