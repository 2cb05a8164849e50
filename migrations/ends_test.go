package migrations_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// In a recorder's first minutes no table is analysed, and later the analysed rows are not the present ones.
func TestTheIndexFindsEndsOfLivesWhateverTheStatistics(t *testing.T) {
	for name, known := range map[string]string{
		"nothing":    "SELECT",
		"no life":    "ANALYZE kuberewind.living",
		"one life":   "INSERT INTO kuberewind.living SELECT 1, n, n FROM generate_series(20001, 20001) n; ANALYZE kuberewind.living",
		"many lives": "INSERT INTO kuberewind.living SELECT 1, n % 7, n FROM generate_series(20001, 29999) n; ANALYZE kuberewind.living",
		"one stream": "INSERT INTO kuberewind.living SELECT 1, 1, n FROM generate_series(20001, 29999) n; ANALYZE kuberewind.living",
	} {
		t.Run(name, func(t *testing.T) {
			_, conn := migrated(t)
			tx, err := conn.Begin(t.Context())
			require.NoError(t, err)
			defer func() { _ = tx.Rollback(t.Context()) }()
			run(t, tx, known)
			for range 8 { // now the server has a generic plan
				run(t, tx, `SELECT kuberewind.end_living(1, array_agg(1), array_agg(n)) FROM generate_series(-20::bigint, -1) n`)
			}
			run(t, tx, "DELETE FROM kuberewind.living")
			run(t, tx, "INSERT INTO kuberewind.living SELECT 1, n % 7, n FROM generate_series(1, 5000) n")
			run(t, tx, "CREATE TEMPORARY TABLE gone ON COMMIT DROP AS SELECT * FROM kuberewind.living ORDER BY random() LIMIT 500")
			fetched := one[int](t, tx, "SELECT idx_tup_fetch::int FROM pg_stat_xact_user_tables WHERE relid = 'kuberewind.living'::regclass")
			for i := range 10 {
				run(t, tx, fmt.Sprintf("SELECT kuberewind.end_living(1, array_agg(stream), array_agg(object_id)) FROM (SELECT * FROM gone ORDER BY object_id LIMIT 50 OFFSET %d) l", 50*i))
			}
			require.Equal(t, 500, one[int](t, tx, "SELECT idx_tup_fetch::int FROM pg_stat_xact_user_tables WHERE relid = 'kuberewind.living'::regclass")-fetched)
			require.Equal(t, 4500, one[int](t, tx, "SELECT count(*)::int FROM kuberewind.living"))
			require.Zero(t, one[int](t, tx, "SELECT count(*)::int FROM kuberewind.living JOIN gone USING (cluster, stream, object_id)"))
		})
	}
}
