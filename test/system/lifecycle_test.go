package system_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func TestOtherRulesEndNoLife(t *testing.T) {
	t.Parallel()
	w := lentWorld(t)
	w.connect(t)
	a := w.act(t)
	under := func(rules ...string) {
		t.Helper()
		w.extra = rules
		recorder := w.recordReady(t)
		recorder.Terminate(t)
	}
	const left = `SELECT name FROM kuberewind.exclusions ORDER BY name`
	const rows = `SELECT type || ' ' || name FROM kuberewind.deltas WHERE resource = 'configmaps' AND namespace = 'default'
		AND name <> 'kube-root-ca.crt' ORDER BY seq`
	for _, team := range []string{"a", "b"} {
		configMap := template(configMaps, "default", "of-"+team)
		configMap.SetLabels(map[string]string{"team": team})
		a.create(configMaps, configMap)
	}

	under("--exclude", "configmaps?team=b")
	require.Equal(t, []string{"Sync of-a"}, w.lines(t, rows))
	require.Equal(t, []string{"of-b"}, w.lines(t, left))
	under("--exclude", "configmaps?team=a")
	want := []string{"Sync of-a", "Sync of-b"}
	require.Equal(t, want, w.lines(t, rows), "what the rules let in now is recorded, and what was recorded goes on")
	require.Empty(t, w.lines(t, left))
	for _, rules := range [][]string{{"--exclude", "configmaps/default"}, nil, {"--exclude", "configmaps?team=b"}} {
		under(rules...)
		require.Equal(t, want, w.lines(t, rows), "nothing was deleted: %q", rules)
	}

	w.extra = []string{"--exclude", "configmaps/default"}
	recorder := w.recordReady(t)
	a.create(configMaps, template(configMaps, "default", "new"))
	a.delete(configMaps, "of-a")
	w.awaitLines(t, append(want, "Deleted of-a"), rows)
	recorder.Terminate(t)
}

func TestDocumentsOfTheServerAreRecordedWhenTheyChange(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t)
	const changed = `SELECT count(*)::text FROM kuberewind.server WHERE path = '/apis'`
	const schemas = `SELECT path FROM kuberewind.server WHERE path = ANY ($1) ORDER BY path`
	wanted := []string{"/api", "/apis", "/openapi/v3/apis/apps/v1", "/version"}
	w.awaitLines(t, wanted, `SELECT DISTINCT path FROM kuberewind.server WHERE path = ANY ($1) ORDER BY path`, wanted)
	before := w.lines(t, changed)

	a := w.act(t)
	a.create(crds, widgetCRD())
	own := []string{"/openapi/v3/apis/example.kuberewind.dev/v1"}
	w.awaitLines(t, own, schemas, own)
	eventually(t.Context(), t, "discovery, which changed, on record", func() bool { return !slices.Equal(before, w.lines(t, changed)) })
	recorder.Terminate(t)
}

func TestALifeIsRecordedOrLeftOutAsItWasFirstSeen(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t, "--exclude", "configmaps?private", "--exclude", "*/kube-*", "--exclude", "leases")
	a := w.act(t)

	private := template(configMaps, "default", "private")
	private.SetLabels(map[string]string{"private": "yes"})
	a.create(configMaps, private)
	a.create(configMaps, template(configMaps, "default", "public"))
	a.merge(configMaps, "private", `{"metadata":{"labels":null}}`)
	a.merge(configMaps, "public", `{"metadata":{"labels":{"private":"yes"}}}`)

	const rows = `SELECT type || ' ' || name FROM kuberewind.deltas WHERE resource = 'configmaps' AND namespace = 'default'
		AND name <> 'kube-root-ca.crt' ORDER BY seq`
	want := []string{"Added public", "Updated public"}
	w.awaitLines(t, want, rows)
	recorder.Terminate(t)

	recorder = w.recordReady(t)
	a.merge(configMaps, "private", `{"data":{"key-0":"after the restart"}}`)
	a.merge(configMaps, "public", `{"data":{"key-0":"after the restart"}}`)
	a.delete(configMaps, "private")
	a.delete(configMaps, "public")
	w.awaitLines(t, append(want, "Updated public", "Deleted public"), rows)
	require.Empty(t, w.lines(t, `SELECT DISTINCT resource FROM kuberewind.deltas WHERE resource = 'leases' OR namespace LIKE 'kube-%'`))
	require.Equal(t, []string{"configmaps?private"},
		w.lines(t, `SELECT config -> 'exclude' ->> 0 FROM kuberewind.epochs ORDER BY epoch DESC LIMIT 1`))

	recorder.Terminate(t)
	w.extra = nil
	recorder = w.recordReady(t)
	for what, query := range map[string]string{
		"a gap, because the filter excluded the resource before": `SELECT resource FROM kuberewind.gaps WHERE cause = 'configuration' AND resource = 'configmaps'`,
		"the objects that the filter excluded before":            `SELECT name FROM kuberewind.deltas WHERE resource = 'configmaps' AND namespace LIKE 'kube-%'`,
	} {
		recordertest.Eventually(t.Context(), t, what, func() bool { return len(w.lines(t, query)) > 0 })
	}
	recorder.Terminate(t)
}

func TestTheRecordersLoginCannotChangeWhatIsOnRecord(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t)
	_, err := w.db.Exec(t.Context(), `SET ROLE kuberewind_writer`)
	require.NoError(t, err)
	for _, sql := range []string{
		`UPDATE kuberewind.deltas_data SET rv = '1'`, `DELETE FROM kuberewind.deltas_data`, `TRUNCATE kuberewind.deltas_data`,
		`DELETE FROM kuberewind.batches`, `DROP TABLE kuberewind.deltas_data`,
	} {
		_, err := w.db.Exec(context.WithoutCancel(t.Context()), sql)
		require.Regexp(t, "permission denied|must be owner", err, sql)
	}
	recorder.Terminate(t)
}

func TestARecorderMakesACheckpointWhenOneIsDueAndReplayUsesIt(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t, "--checkpoint-every", "50")
	recorder.Terminate(t)

	// It looks at its start, and from then on once a minute. The first one may have found its list on record, and made the checkpoint.
	recorder = w.recordReady(t)
	eventually(t.Context(), t, "a checkpoint", func() bool {
		return len(w.lines(t, `SELECT checkpoint::text FROM kuberewind.record_checkpoints`)) == 1
	})
	record, err := history.Open(t.Context(), w.database, history.Options{})
	require.NoError(t, err)
	defer record.Close()
	point, err := record.Resolve(t.Context(), history.Now(), history.Scope{})
	require.NoError(t, err)
	rebuilt, stats := rebuild(t, record, point, history.Scope{})
	require.NotEmpty(t, rebuilt)
	require.NotZero(t, stats.Checkpoint)
	recorder.Terminate(t)
}

func TestTheWriterIsNamedAlsoWhereManyWriteWithinOneSecond(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t)
	in := w.act(t).in(deployments)
	want := map[string]string{}
	wrote := func(manager string, o *unstructured.Unstructured, err error) {
		require.NoError(t, err)
		want[o.GetResourceVersion()] = manager
	}
	created, err := in.Create(t.Context(), template(deployments, "default", "web"), metav1.CreateOptions{FieldManager: "applier"})
	wrote("applier/", created, err)
	scaled := false
	patch := func(manager, body string, subresources ...string) {
		o, err := in.Patch(t.Context(), "web", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager}, subresources...)
		require.NoError(t, err)
		if len(subresources) > 0 && subresources[0] == "scale" {
			o, err = in.Get(t.Context(), "web", metav1.GetOptions{}) // what came back is a Scale
			if scaled {
				manager, subresources = "-", nil // The entry of scale has no time, and stays as it was.
			}
			scaled = true
		}
		wrote(manager+"/"+strings.Join(subresources, ""), o, err)
	}
	for i := range 10 {
		patch("annotator", fmt.Sprintf(`{"metadata":{"annotations":{"example.dev/n":"%d"}}}`, i))
		patch("controller", fmt.Sprintf(`{"status":{"observedGeneration":%d}}`, i+1), "status")
		patch("autoscaler", fmt.Sprintf(`{"spec":{"replicas":%d}}`, i+3), "scale")
		patch("setter", fmt.Sprintf(`{"spec":{"minReadySeconds":%d}}`, i+1))
	}
	got := map[string]string{}
	eventually(t.Context(), t, "all writes on record", func() bool {
		clear(got)
		for _, line := range w.lines(t, `SELECT resource_version || ' ' || coalesce(manager, '-') || '/' || coalesce(subresource, '') FROM kuberewind.deltas WHERE resource = 'deployments'`) {
			rv, manager, _ := strings.Cut(line, " ")
			got[rv] = manager
		}
		return len(got) >= len(want)
	})
	require.Equal(t, want, got)
	recorder.Terminate(t)
}
