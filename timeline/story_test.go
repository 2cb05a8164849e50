package timeline_test

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStatesOfADeploymentFollowItsVersions(t *testing.T) {
	s := newScene(t, time.Minute)
	db := s.database.Connect(t)
	v := s.whole()
	v.Set("resource", "deployments.apps")
	v.Set("namespace", "shop")
	v.Set("name", "web")
	var found laneList
	s.ask(t, "lanes", v, &found)
	id := found.Lanes[0].ID
	var got struct {
		From, To int64
		Lanes    []struct {
			From, To    []int64
			State, Text []string
		}
	}
	window := s.whole()
	window.Set("lanes", strconv.FormatInt(id, 10))
	s.ask(t, "states", window, &got)
	bars := got.Lanes[0]
	rows, err := db.Query(t.Context(), `
		SELECT occurred_at, coalesce((o #>> '{status,availableReplicas}')::int, 0), coalesce((o #>> '{spec,replicas}')::int, 1)
		FROM kuberewind.deltas, LATERAL (SELECT kuberewind.object_at('', api_group, resource, namespace, name, 'seq:' || seq) AS o) v
		WHERE object_id = $1 AND type <> 'Deleted' ORDER BY seq`, id)
	require.NoError(t, err)
	defer rows.Close()
	versions, states := 0, map[string]bool{}
	for rows.Next() {
		var at time.Time
		var have, want int
		require.NoError(t, rows.Scan(&at, &have, &want))
		versions++
		for i := range bars.From {
			states[bars.State[i]] = true
			// If one millisecond has several versions, the last one has the bar.
			if ms := at.UnixMilli() - got.From; ms > bars.From[i] && ms+1 < bars.To[i] {
				require.True(t, strings.HasPrefix(bars.Text[i], fmt.Sprintf("%d/%d available", have, want)), "%s at %d: %d/%d", bars.Text[i], ms, have, want)
			}
		}
	}
	require.NoError(t, rows.Err())
	require.Greater(t, versions, 5)
	require.True(t, states["bad"] && states["ok"] && states["progress"], "the rollout was stuck, and then ended: %v", states)
}

func TestTroubleNamesTheChangeBeforeIt(t *testing.T) {
	s := newScene(t, time.Minute)
	var at, broke int64
	db := s.database.Connect(t)
	require.NoError(t, db.QueryRow(t.Context(), `SELECT min(seq) FROM kuberewind.deltas WHERE kind = 'Pod' AND name LIKE 'web-%' AND patch::text LIKE '%ImagePullBackOff%'`).Scan(&at))
	require.NoError(t, db.QueryRow(t.Context(), `SELECT seq FROM kuberewind.changes WHERE kind = 'Deployment' AND name = 'web' AND new = '"registry.example/web:v2-broken"'`).Scan(&broke))
	var got struct {
		Total int
		Items []struct {
			Kind, Name, Text string
			Since            *int64
			FirstChange      *struct {
				Seq  int64
				Kind string
				Text string
			}
		}
	}
	s.ask(t, "trouble", url.Values{"at": {"seq:" + strconv.FormatInt(at, 10)}}, &got)
	require.Len(t, got.Items, got.Total)
	found := false
	for _, item := range got.Items {
		if item.Kind != "Pod" || !strings.HasPrefix(item.Name, "web-") {
			continue
		}
		found = true
		require.NotNil(t, item.Since)
		require.LessOrEqual(t, *item.Since, at)
		require.NotNil(t, item.FirstChange)
		require.Equal(t, broke, item.FirstChange.Seq, item.FirstChange.Text)
		require.Equal(t, "changed /spec/template/spec/containers/0/image by kubectl-set", item.FirstChange.Text)
	}
	require.True(t, found)
	v := s.whole()
	v.Set("to", strconv.FormatInt(s.timeOf(t, at), 10))
	v.Set("sort", "trouble")
	var lanes laneList
	s.ask(t, "lanes", v, &lanes)
	require.True(t, strings.HasPrefix(lanes.Lanes[0].Name, "web"), "%s stands first", lanes.Lanes[0].Name)
}

// timeOf returns the millisecond after a delta.
func (s *scene) timeOf(t *testing.T, seq int64) int64 {
	t.Helper()
	var at time.Time
	require.NoError(t, s.database.Connect(t).QueryRow(t.Context(), `SELECT observed_at FROM kuberewind.deltas WHERE seq = $1`, seq).Scan(&at))
	return at.UnixMilli() + 1
}

func TestPodsAreBelowTheirNodes(t *testing.T) {
	s := newScene(t, time.Minute)
	v := s.whole()
	v.Set("group", "node")
	v.Set("resource", "pods")
	v.Set("limit", "500")
	var got laneList
	s.ask(t, "lanes", v, &got)
	under := 0
	for _, l := range got.Lanes {
		if l.Kind == "Pod" && l.Depth == 1 {
			under++
		}
		require.Contains(t, []string{"Pod", "Node"}, l.Kind)
	}
	require.Positive(t, under)
}

func TestADeploymentHasAStoryAndABlame(t *testing.T) {
	s := newScene(t, time.Minute)
	name := url.Values{"resource": {"deployments.apps"}, "namespace": {"shop"}, "name": {"web"}}
	v := s.whole()
	for key, value := range name {
		v[key] = value
	}
	var story struct {
		Rows     []struct{ Kind string }
		Rollouts []struct {
			Outcome  string
			Troubles []struct{ Reason string }
		}
		Command string
	}
	s.ask(t, "story", v, &story)
	outcomes := map[string]bool{}
	for _, r := range story.Rollouts {
		outcomes[r.Outcome] = true
	}
	require.True(t, outcomes["undone"], "%v", story.Rollouts)
	require.NotEmpty(t, story.Rows)
	var blame struct {
		Lines []struct {
			Text, Path string
			Origin     int
		}
		Origins []struct{ Manager string }
	}
	name.Set("at", "now")
	s.ask(t, "blame", name, &blame)
	for _, l := range blame.Lines {
		if l.Path == "/spec/template/spec/containers/0/image" {
			require.NotEmpty(t, blame.Origins[l.Origin].Manager, l.Text)
			return
		}
	}
	t.Fatal("the image has no line")
}
