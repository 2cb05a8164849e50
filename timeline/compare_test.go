package timeline_test

import (
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

type compared struct {
	Counts  struct{ Added, Removed, Changed, Noise int }
	Objects []struct {
		Kind, Name, UID, Op string
		Paths               int
	}
	Changes []struct{ Op, Path, Field string }
	Next    string
	Command string
}

func TestCompareEqualsAComparisonOfSnapshotsInSQL(t *testing.T) {
	s := newScene(t, time.Minute)
	db := s.database.Connect(t)
	first := s.extent.FirstSeq + 300
	for _, pair := range [][2]int64{{first, s.extent.LastSeq}, {s.extent.LastSeq, first}, {first, first}} {
		a, b := "seq:"+strconv.FormatInt(pair[0], 10), "seq:"+strconv.FormatInt(pair[1], 10)
		var got compared
		s.ask(t, "compare", url.Values{"a": {a}, "b": {b}, "namespace": {"shop"}, "limit": {"2000"}}, &got)
		var all, added, removed int
		require.NoError(t, db.QueryRow(t.Context(), `
			WITH a AS (SELECT * FROM kuberewind.snapshot_at('', $1, namespace => 'shop')), b AS (SELECT * FROM kuberewind.snapshot_at('', $2, namespace => 'shop'))
			SELECT count(*) FILTER (WHERE a.uid IS NULL OR b.uid IS NULL OR a.object <> b.object),
				count(*) FILTER (WHERE a.uid IS NULL AND b.kind NOT IN ('Event', 'Lease', 'Endpoints', 'EndpointSlice')),
				count(*) FILTER (WHERE b.uid IS NULL AND a.kind NOT IN ('Event', 'Lease', 'Endpoints', 'EndpointSlice'))
			FROM a FULL JOIN b ON a.uid = b.uid`, a, b).Scan(&all, &added, &removed))
		require.Equal(t, all, got.Counts.Added+got.Counts.Removed+got.Counts.Changed+got.Counts.Noise, "every object that differs is counted")
		require.Equal(t, added, got.Counts.Added)
		require.Equal(t, removed, got.Counts.Removed)
		require.Len(t, got.Objects, got.Counts.Added+got.Counts.Removed+got.Counts.Changed)
	}
}

func TestCompareReturnsThePathsOfOneObject(t *testing.T) {
	s := newScene(t, time.Minute)
	var broke int64
	var uid string
	require.NoError(t, s.database.Connect(t).QueryRow(t.Context(), `
		SELECT seq, uid FROM kuberewind.changes WHERE kind = 'Deployment' AND name = 'web' AND new = '"registry.example/web:v2-broken"'`).Scan(&broke, &uid))
	var got compared
	s.ask(t, "compare", url.Values{"a": {"seq:" + strconv.FormatInt(broke-1, 10)}, "b": {"seq:" + strconv.FormatInt(broke, 10)}, "uid": {uid}}, &got)
	require.Len(t, got.Objects, 1)
	require.Equal(t, "changed", got.Objects[0].Op)
	found := false
	for _, c := range got.Changes {
		found = found || c.Path == "/spec/template/spec/containers/0/image" && c.Field == "spec.template.spec.containers[web].image"
	}
	require.True(t, found, "%v", got.Changes)
	require.Equal(t, 400, int(s.refused(t, "compare", nil).Code))
}
