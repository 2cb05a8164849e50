package timeline_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/timelinetest"
	"github.com/kuberewind/kuberewind/patch"
)

type shown struct {
	Exists bool
	Object struct{ Resource, Namespace, Name, UID, ResourceVersion string }
	YAML   []struct{ Text, Path, Mark string }
	Delta  *struct {
		Seq     int64
		Class   string
		Manager string
	}
	Diff           []struct{ Op, Path string }
	Previous, Next *int64
	Command        string
}

// A version is a version according to SQL.
type version struct {
	seq            int64
	uid            string
	object         []byte
	previous, next *int64
	changed        bool
}

func (s *scene) versions(t *testing.T, n int) (all []version) {
	t.Helper()
	db := s.database.Connect(t)
	rows, err := db.Query(t.Context(), `
		SELECT d.seq, d.uid, kuberewind.object_at('', d.api_group, d.resource, d.namespace, d.name, 'seq:' || d.seq)::text,
			(SELECT max(seq) FROM kuberewind.deltas b WHERE b.uid = d.uid AND b.seq < d.seq), (SELECT min(seq) FROM kuberewind.deltas b WHERE b.uid = d.uid AND b.seq > d.seq),
			coalesce(jsonb_array_length(d.patch) > 0, false)
		FROM kuberewind.deltas d WHERE d.type <> 'Deleted' ORDER BY md5(d.seq::text || $1) LIMIT $2`, strconv.Itoa(rand.IntN(1000)), n)
	require.NoError(t, err)
	defer rows.Close()
	for rows.Next() {
		var v version
		require.NoError(t, rows.Scan(&v.seq, &v.uid, &v.object, &v.previous, &v.next, &v.changed))
		all = append(all, v)
	}
	require.NoError(t, rows.Err())
	return all
}

func TestAnObjectIsShownAsSQLShowsIt(t *testing.T) {
	s := newScene(t, time.Minute)
	for _, v := range s.versions(t, 25) {
		doc, err := patch.Canonical(v.object)
		require.NoError(t, err)
		want, err := render.YAML(doc)
		require.NoError(t, err)
		var got shown
		s.ask(t, "object", url.Values{"uid": {v.uid}, "at": {"seq:" + strconv.FormatInt(v.seq, 10)}}, &got)
		require.True(t, got.Exists)
		var text strings.Builder
		for _, line := range got.YAML {
			text.WriteString(line.Text + "\n")
		}
		require.Equal(t, string(want), text.String())
		require.Equal(t, v.seq, got.Delta.Seq)
		require.Equal(t, v.previous, got.Previous)
		require.Equal(t, v.next, got.Next)
		require.Equal(t, v.changed, v.previous != nil && len(got.Diff) > 1, "the diff has the resource version and the changes of the patch: %v", got.Diff)
		require.Contains(t, got.Command, "--at seq:"+strconv.FormatInt(v.seq, 10))
	}
}

func TestADeletedObjectHasItsLastVersion(t *testing.T) {
	s := newScene(t, time.Minute)
	var last, deleted int64
	var uid string
	db := s.database.Connect(t)
	require.NoError(t, db.QueryRow(t.Context(), `SELECT seq, uid FROM kuberewind.deltas WHERE type = 'Deleted' AND kind = 'ConfigMap' AND name = 'old'`).Scan(&deleted, &uid))
	require.NoError(t, db.QueryRow(t.Context(), `SELECT max(seq) FROM kuberewind.deltas`).Scan(&last))
	var got shown
	s.ask(t, "object", url.Values{"uid": {uid}, "at": {"now"}}, &got)
	require.False(t, got.Exists)
	require.Equal(t, deleted, *got.Previous)
	require.Nil(t, got.Next)
	require.Empty(t, got.YAML)
	var alone related
	s.ask(t, "related", url.Values{"uid": {uid}, "at": {"now"}}, &alone)
	require.Empty(t, alone.Owners)
	require.Zero(t, alone.OwnedTotal+alone.EventsTotal)
	require.Equal(t, 404, int(s.refused(t, "object", url.Values{"uid": {"00000000-0000-0000-0000-000000000000"}}).Code))
	require.Equal(t, 404, int(s.refused(t, "object", url.Values{"resource": {"pods"}, "namespace": {"shop"}, "name": {"absent"}}).Code))
	require.Equal(t, 400, int(s.refused(t, "object", nil).Code))
	require.Equal(t, 410, int(s.refused(t, "object", url.Values{"uid": {uid}, "at": {"1970-01-02T00:00:00Z"}}).Code))
}

// related is an answer of the request related.
type related struct {
	Owners, Owned           []struct{ Kind, Name, UID string }
	OwnedTotal, EventsTotal int
	Events                  []struct{ Reason string }
}

func TestADeploymentHasItsOwnedObjectsAndEvents(t *testing.T) {
	s := newScene(t, time.Minute)
	var got, set related
	s.ask(t, "related", url.Values{"resource": {"deployments.apps"}, "namespace": {"shop"}, "name": {"web"}}, &got)
	require.NotEmpty(t, got.Owned)
	require.Len(t, got.Owned, got.OwnedTotal)
	require.NotEmpty(t, got.Events)
	s.ask(t, "related", url.Values{"uid": {got.Owned[0].UID}}, &set)
	require.Equal(t, "ReplicaSet", got.Owned[0].Kind)
	require.Equal(t, "web", set.Owners[0].Name)
}

func TestEachObjectHasTheEventsAboutIt(t *testing.T) {
	s := newScene(t, time.Minute)
	db := s.database.Connect(t)
	rows, err := db.Query(t.Context(), `
		SELECT object -> 'involvedObject' ->> 'uid', count(*) FROM kuberewind.snapshot_at('', 'now', '', 'events')
		WHERE object -> 'involvedObject' ->> 'uid' IN (SELECT object -> 'metadata' ->> 'uid' FROM kuberewind.snapshot_at('', 'now')) GROUP BY 1`)
	require.NoError(t, err)
	counted, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct {
		UID    string
		Events int
	}])
	require.NoError(t, err)
	require.Greater(t, len(counted), 3)
	for _, of := range counted {
		var got related
		s.ask(t, "related", url.Values{"uid": {of.UID}}, &got)
		require.Equal(t, of.Events, got.EventsTotal, of.UID)
	}
}

func TestStepsEqualTheDocumentedSQL(t *testing.T) {
	s, hasty := newScene(t, time.Minute), newScene(t, time.Nanosecond)
	db := s.database.Connect(t)
	sql := documented(t, db)
	random := rand.New(rand.NewPCG(11, 0))
	for i := range 24 {
		c := sql.Choose(random, timelinetest.OfScene(), 1)
		seq := random.Int64N(s.extent.LastSeq + 10)
		direction, query := "next", strings.ReplaceAll(sql["step"], ":'seq'", "$1")
		if i%2 == 0 {
			direction, query = "previous", "SELECT max(seq) FROM marks d WHERE seq < $1"
		}
		var want *int64
		require.NoError(t, db.QueryRow(t.Context(), query+c.Where, seq).Scan(&want))
		c.Values.Set("direction", direction)
		for _, each := range []*scene{s, hasty} {
			from := seq
			for {
				c.Values.Set("seq", strconv.FormatInt(from, 10))
				var got struct{ Seq, Next *int64 }
				each.ask(t, "step", c.Values, &got)
				if got.Next == nil {
					require.Equal(t, want, got.Seq, c.Values)
					break
				}
				require.NotEqual(t, from, *got.Next)
				from = *got.Next
			}
		}
	}
}

func TestStepsFollowAnObjectAndItsGroup(t *testing.T) {
	s := newScene(t, time.Minute)
	var pod string
	var first int64
	db := s.database.Connect(t)
	require.NoError(t, db.QueryRow(t.Context(), `
		SELECT uid, min(seq) FROM kuberewind.deltas WHERE kind = 'Pod' AND name LIKE 'web-%' AND patch::text LIKE '%ImagePullBackOff%' GROUP BY uid ORDER BY 2 LIMIT 1`).Scan(&pod, &first))
	var step struct {
		Seq *int64
		UID string
	}
	v := url.Values{"uid": {pod}, "seq": {strconv.FormatInt(first, 10)}, "direction": {"previous"}, "scope": {"object"}}
	s.ask(t, "step", v, &step)
	require.Equal(t, pod, step.UID)
	v.Set("scope", "group")
	v.Set("resource", "deployments.apps")
	v.Set("class", "change")
	s.ask(t, "step", v, &step)
	var name string
	require.NoError(t, db.QueryRow(t.Context(), `SELECT kind || '/' || name FROM kuberewind.deltas WHERE seq = $1`, step.Seq).Scan(&name))
	require.Equal(t, "Deployment/web", name)
}

func TestChangesEqualTheRowsOfTheView(t *testing.T) {
	s := newScene(t, time.Minute)
	db := s.database.Connect(t)
	v := s.whole()
	v.Set("namespace", "shop")
	v.Add("class", "change")
	v.Add("class", "status")
	v.Set("limit", "50")
	seen := int64(1 << 62)
	rows := 0
	for {
		var page struct {
			Rows []struct {
				Seq     int64
				Changes []struct {
					Op, Path string
					New      json.RawMessage
				}
			}
			Next string
		}
		s.ask(t, "changes", v, &page)
		for _, row := range page.Rows {
			require.Less(t, row.Seq, seen, "the newest come first")
			seen = row.Seq
			rows++
			var paths []string
			for _, c := range row.Changes {
				paths = append(paths, c.Op+" "+c.Path)
			}
			var want []string
			require.NoError(t, db.QueryRow(t.Context(), `
				SELECT array_agg(op || ' ' || path ORDER BY step) FROM kuberewind.changes
				WHERE seq = $1 AND patch IS NOT NULL AND path !~ '^/metadata/(managedFields|resourceVersion|generation)(/|$)'`, row.Seq).Scan(&want))
			require.Equal(t, want, paths, "seq %d", row.Seq)
		}
		if page.Next == "" {
			break
		}
		v.Set("cursor", page.Next)
	}
	require.Greater(t, rows, 50)
}
