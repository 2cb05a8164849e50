package story_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/story"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func scene(t *testing.T) *history.Record {
	t.Helper()
	database := pgtest.New(t, scenetest.Record)
	rec, err := history.Open(t.Context(), database.URL(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(rec.Close)
	return rec
}

// about returns the query of an object.
func about(t *testing.T, rec *history.Record, resource, namespace, name string) history.Query {
	t.Helper()
	streams, err := rec.Streams(t.Context())
	require.NoError(t, err)
	q := history.Query{Scope: history.Scope{Streams: []int32{}, Namespace: namespace, Name: name}}
	for _, s := range streams {
		if s.GroupResource().String() == resource {
			q.Streams = append(q.Streams, s.ID)
		}
	}
	require.NotEmpty(t, q.Streams)
	return q
}

// readStory reads a story to its end.
func readStory(t *testing.T, rec *history.Record, q history.Query) (*story.Story, []story.Entry) {
	t.Helper()
	s, err := story.Find(t.Context(), rec, q)
	require.NoError(t, err)
	require.NoError(t, s.Search(t.Context()))
	var all []story.Entry
	for e, err := range s.Entries(t.Context()) {
		require.NoError(t, err)
		all = append(all, e)
	}
	return s, all
}

func summary(r *story.Rollout) string {
	image := func(template patch.Doc) string {
		value, _ := patch.Get(template, "/spec/containers/0/image")
		name, _ := patch.Unquote(value)
		_, tag, _ := strings.Cut(string(name), ":")
		return tag
	}
	text := fmt.Sprintf("%s: %s→%s", r.Revision, image(r.Before), image(r.After))
	if r.Start != nil {
		text += fmt.Sprintf(" from %d by %s", r.Start.Seq, r.Start.Manager)
	}
	for _, why := range r.Troubles {
		text += fmt.Sprintf(", %s of %d at %d", why.Reason, len(why.Objects), why.At.Seq)
	}
	if r.End != nil {
		text += fmt.Sprintf(", %s at %d", r.Outcome, r.End.Seq)
	}
	return text
}

func summaries(s *story.Story) (all []string) {
	for _, r := range s.Rollouts() {
		all = append(all, summary(r))
	}
	return all
}

func TestTheBadRolloutOfTheShopWasStuckAndUndone(t *testing.T) {
	rec := scene(t)
	q := about(t, rec, "deployments.apps", "shop", "web")
	s, _ := readStory(t, rec, q)
	require.Equal(t, []string{
		"1: →v1 from 235 by kubectl-client-side-apply, done at 264",
		"2: v1→v2-broken from 448 by kubectl-set, ImagePullBackOff of 3 at 459, ProgressDeadlineExceeded of 1 at 506, undone at 522",
		"3: v2-broken→v1 from 522 by kubectl, done at 557",
		"4: v1→v1 from 824 by kubectl-set, done at 934",
		"5: v1→v1 from 943 by , done at 1054",
		"6: v1→v3 from 1238 by kubectl-set, done at 1344",
	}, summaries(s))
	bad := s.Rollouts()[1].Troubles[0]
	require.Equal(t, "Back-off pulling image", bad.Message)
	require.Equal(t, "Pod", bad.Objects[0].Stream.Kind)

	q.FromSeq, q.ToSeq = 453, 500
	s, entries := readStory(t, rec, q)
	require.Equal(t, []string{"2: →v2-broken, ImagePullBackOff of 3 at 459"}, summaries(s), "it began earlier, and has not ended")
	require.EqualValues(t, 453, entries[0].Seq)
	require.LessOrEqual(t, entries[len(entries)-1].Seq, int64(500))
}

// belongs is a naive search: it reads all versions of all objects.
const belongs = `
	WITH RECURSIVE firsts AS (
		SELECT DISTINCT ON (object_id) object_id, kind, namespace, name, uid, object, source FROM kuberewind.deltas WHERE object IS NOT NULL ORDER BY object_id, seq
	), tree AS (
		SELECT object_id, uid FROM firsts WHERE kind = $1 AND namespace = $2 AND name = $3
		UNION
		SELECT f.object_id, f.uid FROM tree t JOIN firsts f ON f.object @> jsonb_build_object('metadata', jsonb_build_object('ownerReferences', jsonb_build_array(jsonb_build_object('uid', t.uid))))
	), members AS (
		SELECT object_id FROM tree UNION SELECT f.object_id FROM firsts f JOIN tree t ON f.object #>> '{involvedObject,uid}' = t.uid
	)
	SELECT seq FROM kuberewind.deltas WHERE object_id IN (SELECT object_id FROM members) ORDER BY seq`

func TestAStoryHasTheDeltasOfAllRelatedObjects(t *testing.T) {
	database := pgtest.New(t, scenetest.Record)
	rec, err := history.Open(t.Context(), database.URL(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(rec.Close)
	db := database.Connect(t)
	for _, o := range []struct {
		resource, kind, namespace, name string
		depth                           int
	}{
		{"deployments.apps", "Deployment", "shop", "web", 2},
		{"deployments.apps", "Deployment", "billing", "ledger", 2},
		{"jobs.batch", "Job", "shop", "migrate", 1},
		{"services", "Service", "shop", "web", 1},
		{"configmaps", "ConfigMap", "billing", "limits", 0},
		{"nodes", "Node", "", "node-001", 1},
	} {
		t.Run(o.kind+" "+o.name, func(t *testing.T) {
			rows, err := db.Query(t.Context(), belongs, o.kind, o.namespace, o.name)
			require.NoError(t, err)
			want, err := pgx.CollectRows(rows, pgx.RowTo[int64])
			require.NoError(t, err)
			require.NotEmpty(t, want)
			s, entries := readStory(t, rec, about(t, rec, o.resource, o.namespace, o.name))
			var got []int64
			for _, e := range entries {
				got = append(got, e.Seq)
				require.Equal(t, e.Stream.Resource == "events", e.Event != nil)
			}
			require.Equal(t, want, got)
			depth := 0
			for _, found := range s.Objects {
				depth = max(depth, found.Depth)
				require.Equal(t, found.Owner == nil, found.Depth == 0)
			}
			require.Equal(t, o.depth, depth)
		})
	}
}

func TestARecreatedObjectHasOneStoryOfTwoLives(t *testing.T) {
	rec := scene(t)
	s, entries := readStory(t, rec, about(t, rec, "configmaps", "billing", "limits"))
	require.Len(t, s.Objects, 2)
	require.NotEqual(t, s.Objects[0].UID, s.Objects[1].UID)
	require.Equal(t, delta.Deleted, entries[1].Type)
}

func TestAnEntryOfAnEventHasItsObjectAndContent(t *testing.T) {
	rec := scene(t)
	_, entries := readStory(t, rec, about(t, rec, "jobs.batch", "shop", "migrate"))
	var said []string
	for _, e := range entries {
		if e.Event != nil && e.Type == delta.Added {
			said = append(said, e.Object.Stream.Kind+" "+e.Event.Type+" "+e.Event.Reason)
			require.NotEmpty(t, e.Event.Message)
			require.Equal(t, change.Event, e.Change.Class)
		}
	}
	require.Contains(t, said, "Job Warning BackoffLimitExceeded")
	require.Contains(t, said, "Job Normal SuccessfulCreate")
}

func TestAnUnknownObjectHasNoStory(t *testing.T) {
	rec := scene(t)
	s, entries := readStory(t, rec, about(t, rec, "deployments.apps", "shop", "absent"))
	require.Empty(t, s.Objects)
	require.Empty(t, entries)
	_, err := story.Find(t.Context(), rec, history.Query{})
	require.ErrorContains(t, err, "name it")
}
