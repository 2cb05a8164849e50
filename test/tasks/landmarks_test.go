package tasks_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// A landmark is an instant of the scene, which an engineer knows from a clock, an alert or an earlier answer.
type landmark struct{ name, sql string }

const (
	stamp = `to_char(min(observed_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`
	// image is when the Deployment web got an image.
	image = `SELECT ` + stamp + ` FROM kuberewind.changes WHERE kind = 'Deployment' AND name = 'web' AND path ~ '/image$' AND new #>> '{}' = `
)

var landmarks = []landmark{
	{"{begin}", `SELECT ` + stamp + ` FROM kuberewind.deltas WHERE source = 'watch'`},
	{"{installed}", `SELECT ` + stamp + ` FROM kuberewind.deltas WHERE kind = 'Certificate'`},
	{"{broken}", image + `'registry.example/web:v2-broken'`},
	{"{alert}", `SELECT ` + stamp + ` FROM kuberewind.changes WHERE kind = 'Deployment' AND name = 'web' AND new::text LIKE '%ProgressDeadlineExceeded%'`},
	{"{undone}", image + `'registry.example/web:v1'`},
	{"{cordoned}", `SELECT ` + stamp + ` FROM kuberewind.changes WHERE kind = 'Node' AND name = 'node-003' AND path = '/spec/unschedulable'`},
	{"{uncordoned}", `SELECT ` + stamp + ` FROM kuberewind.changes WHERE kind = 'Node' AND name = 'node-003' AND path = '/spec/unschedulable' AND op = 'remove'`},
	{"{not-ready}", `SELECT ` + stamp + ` FROM kuberewind.changes WHERE kind = 'Node' AND name = 'node-001' AND new::text LIKE '%KubeletNotReady%'`},
	{"{killed}", `SELECT ` + stamp + ` FROM kuberewind.changes WHERE kind = 'Pod' AND name = 'report' AND new::text LIKE '%OOMKilled%'`},
	{"{report-ends}", `SELECT 'seq:' || min(seq) - 1 FROM kuberewind.deltas WHERE kind = 'Pod' AND name = 'report' AND patch::text LIKE '%deletionTimestamp%'`},
	{"{new-columns}", `SELECT ` + stamp + ` FROM kuberewind.changes WHERE kind = 'CustomResourceDefinition' AND new::text LIKE '%Issuer%'`},
	{"{date}", `SELECT to_char(min(observed_at) AT TIME ZONE 'UTC', 'YYYY-MM-DD') FROM kuberewind.deltas`},
}

func findLandmarks(t *testing.T, database *pgtest.Database, db *pgx.Conn) *strings.Replacer {
	t.Helper()
	var found []string
	for _, l := range landmarks {
		var at *string
		require.NoError(t, db.QueryRow(t.Context(), l.sql).Scan(&at), l.name)
		require.NotNil(t, at, "the scene has no %s", l.name)
		found = append(found, l.name, *at)
	}
	code, head := recordertest.RunProgram(t, "recorder", "head", "--database", database.URL())
	require.Zero(t, code, head)
	return strings.NewReplacer(append(found, "{head}", strings.TrimSpace(head))...)
}
