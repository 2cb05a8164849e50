package migrations_test

import (
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestExamplesOfThePagesRunForAnAuditorAndFindSomething(t *testing.T) {
	var examples [][][]byte
	for page, least := range map[string]int{"../docs/sql.md": 9, "../docs/reference.md": 1, "../docs/sizing.md": 1} {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		found := regexp.MustCompile("(?s)```sql\n((?:SELECT|WITH) .*?);\n```").FindAllSubmatch(text, -1)
		require.GreaterOrEqual(t, len(found), least, page)
		examples = append(examples, found...)
	}

	r := record(t)
	r.now = time.Now().Add(-time.Hour)
	deployments, configmaps := r.stream("apps", "deployments", "Deployment", true), r.stream("", "configmaps", "ConfigMap", true)
	r.listed(deployments)
	r.listed(configmaps)
	image := func(image string) *booktest.Object {
		return r.made("shop", "web", "uid-1", `{"replicas":3,"template":{"spec":{"containers":[{"name":"a","image":"`+image+`"}]}}}`)
	}
	r.commit(watched(deployments, delta.Added, image("web:1")), watched(configmaps, delta.Added, r.made("shop", "settings", "uid-2", `{}`)),
		watched(configmaps, delta.Added, r.made("shop", "old", "uid-3", `{}`)))
	r.now = time.Now().Add(-time.Minute)
	r.commit(watched(deployments, delta.Updated, image("web:2")), watched(configmaps, delta.Deleted, r.made("shop", "old", "uid-3", `{}`)))
	r.commit(postgres.Item{Stream: configmaps, Kind: postgres.Marked, Marker: delta.Marker{Kind: delta.Interrupted, Cause: "expired"}})
	run(t, r.admin, `INSERT INTO kuberewind.activity SELECT cluster, day, first_seq, last_seq, 'hour', 1, '{2026-03-01Z}', '{1}', '{shop}', '{}', '{added}', '{1}', '{1}', '{1}' FROM kuberewind.days`)
	for _, example := range examples {
		sql := string(example[1])
		rows, err := r.reader.Query(t.Context(), sql)
		require.NoError(t, err, sql)
		found := 0
		for rows.Next() {
			found++
		}
		require.NoError(t, rows.Err(), sql)
		require.Positive(t, found, sql)
	}
}
