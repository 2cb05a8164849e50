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
