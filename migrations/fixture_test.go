package migrations_test

import (
	"testing"
	"time"
)

var (
	day1 = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	day2 = day1.AddDate(0, 0, 1)
	day3 = day1.AddDate(0, 0, 2)
)

// deltaRow is a row of deltas_data in a test; an empty text is NULL.
type deltaRow struct {
	seq, object    int64
	day            time.Time
	kind, source   int
	patch, content string
}

func insertDelta(t *testing.T, conn querier, d deltaRow) {
	t.Helper()
	run(t, conn, `INSERT INTO kuberewind.deltas_data
			(cluster, stream, seq, object_id, observed_at, occurred_at, type, source, rv, version, manager, subresource, digest, patch, object)
		SELECT l.cluster, l.stream, $1, $2, $3, $3, $4, $5, (1000 + $1::bigint)::text, 'v1', 'kubectl', 'scale', '\xaa', NULLIF($6, '')::jsonb, NULLIF($7, '')::json
		FROM kuberewind.lives l WHERE l.cluster = 1 AND l.object_id = $2`,
		d.seq, d.object, d.day, d.kind, d.source, d.patch, d.content)
}

// fill writes a small record of a Deployment and of a Node that vanished. The first list found the Deployment on day 1.
// The Deployment was changed on days 1 and 2, and deleted and created again on day 2.
func fill(t *testing.T, conn querier) {
	t.Helper()
	for _, day := range []time.Time{day1, day2, day3} {
		run(t, conn, "SELECT kuberewind.ensure_day($1)", day)
	}
	run(t, conn, `INSERT INTO kuberewind.clusters VALUES (1, 'uid-of-kube-system', 'prod', now(), '\x00')`)
	run(t, conn, `INSERT INTO kuberewind.heads VALUES (1, 2, 9, 3, '\x00', now(), NULL, NULL, now())`)
	run(t, conn, `INSERT INTO kuberewind.epochs VALUES (1, 1, now(), 0, 'host-1', 'v0.1', '{}'), (1, 2, now(), 5, 'host-2', 'v0.2', '{}')`)
	run(t, conn, `INSERT INTO kuberewind.streams VALUES
		(1, 1, 'apps', 'deployments', '', 'v1', 'Deployment', true, now(), 'live', now(), '', '', '1', '1', 6, true, true, now()),
		(1, 2, '', 'nodes', '', 'v1', 'Node', false, now(), 'live', now(), '', '', '1', '1', 9, true, true, now())`)
	run(t, conn, `INSERT INTO kuberewind.lives VALUES (1, 1, 1, 'default', 'web', 'uid-1'), (1, 6, 1, 'default', 'web', 'uid-6'), (1, 8, 2, '', 'node-a', 'uid-8')`)
	run(t, conn, `INSERT INTO kuberewind.ends VALUES (1, 1, 5), (1, 8, 9)`)
	run(t, conn, `INSERT INTO kuberewind.living VALUES (1, 1, 6)`)
	for _, d := range []deltaRow{
		{seq: 1, object: 1, day: day1, kind: 4, source: 2, content: `{"spec": {"replicas": 3}}`},
		{seq: 2, object: 1, day: day1, kind: 2, source: 1, patch: `[{"op":"replace","path":"/spec/replicas","old":3,"value":5},{"op":"add","path":"/spec/paused","value":null}]`},
		{seq: 3, object: 1, day: day2, kind: 2, source: 1, patch: `[]`},
		{seq: 4, object: 1, day: day2, kind: 4, source: 3, content: `{"spec": {"replicas": 7}}`},
		{seq: 5, object: 1, day: day2, kind: 3, source: 1, patch: `[{"op":"remove","path":"/spec/paused","old":null}]`, content: `{}`},
		{seq: 6, object: 6, day: day2, kind: 1, source: 1, content: `{"spec": {}}`},
		{seq: 7, object: 6, day: day3, kind: 4, source: 4, patch: `[]`, content: `{"spec": {}}`},
		{seq: 8, object: 8, day: day3, kind: 1, source: 1, content: `{}`},
		{seq: 9, object: 8, day: day3, kind: 3, source: 6},
	} {
		insertDelta(t, conn, d)
	}
	run(t, conn, `INSERT INTO kuberewind.days SELECT cluster, (observed_at AT TIME ZONE 'UTC')::date, min(seq), max(seq), min(observed_at), max(observed_at)
		FROM kuberewind.deltas_data GROUP BY 1, 2`)
}
