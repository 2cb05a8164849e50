package known_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

// alive is a naive query: it folds each life into its beginning and its end.
const alive = `
	SELECT DISTINCT name FROM kuberewind.deltas WHERE resource = 'pods' AND ($3 = '' OR namespace = $3) AND starts_with(name, $4)
	GROUP BY name, uid HAVING min(seq) <= $2 AND coalesce(max(seq) FILTER (WHERE type = 'Deleted'), 9223372036854775807) > $1 ORDER BY name`

func TestNamesReturnsObjectsThatWereAlive(t *testing.T) {
	database := pgtest.New(t, scenetest.Record)
	rec, err := history.Open(t.Context(), database.URL(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(rec.Close)
	extent, err := rec.Extent(t.Context())
	require.NoError(t, err)
	streams, err := rec.Streams(t.Context())
	require.NoError(t, err)
	q := known.Lives{}
	for _, s := range streams {
		if s.Resource == "pods" {
			q.Streams = append(q.Streams, s.ID)
		}
	}
	held := 0
	for q.To = 1; q.To <= extent.LastSeq; q.To += 97 {
		for _, q.From = range []int64{q.To, max(1, q.To-150)} {
			for _, q.Namespace = range []string{"", "shop"} {
				for _, q.Prefix = range []string{"", "web-"} {
					rows, err := rec.Pool().Query(t.Context(), alive, q.From, q.To, q.Namespace, q.Prefix)
					require.NoError(t, err)
					want, err := pgx.CollectRows(rows, pgx.RowTo[string])
					require.NoError(t, err)
					names, more, err := known.Names(t.Context(), rec, q)
					require.NoError(t, err)
					require.False(t, more)
					require.ElementsMatch(t, want, names, fmt.Sprint(q))
					held += len(names)
				}
			}
		}
	}
	require.Positive(t, held)
}
