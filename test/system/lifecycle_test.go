package system_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/kuberewind/kuberewind/history"
)

// act is somebody who changes the cluster.
type act struct {
	t      *testing.T
	client dynamic.Interface
}

func (w *world) act(t *testing.T) *act {
	t.Helper()
	client, err := dynamic.NewForConfig(w.plane.Config())
	require.NoError(t, err)
	return &act{t: t, client: client}
}

func (a *act) in(gvr schema.GroupVersionResource) dynamic.ResourceInterface {
	if gvr == crds || gvr == namespaces {
		return a.client.Resource(gvr)
	}
	return a.client.Resource(gvr).Namespace("default")
}

func (a *act) create(gvr schema.GroupVersionResource, o *unstructured.Unstructured) *unstructured.Unstructured {
	a.t.Helper()
	created, err := a.in(gvr).Create(a.t.Context(), o, metav1.CreateOptions{})
	require.NoError(a.t, err)
	return created
}

func (a *act) merge(gvr schema.GroupVersionResource, name, body string) {
	a.t.Helper()
	_, err := a.in(gvr).Patch(a.t.Context(), name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	require.NoError(a.t, err)
}

func (a *act) delete(gvr schema.GroupVersionResource, name string) {
	a.t.Helper()
	require.NoError(a.t, a.in(gvr).Delete(a.t.Context(), name, noGrace()))
}

// awaitWidgets returns when the API server takes widgets. Lists it may still answer under a definition that is going.
func (a *act) awaitWidgets() {
	a.t.Helper()
	eventually(a.t.Context(), a.t, "widgets to be served", func() bool {
		_, err := a.in(widgets).Create(a.t.Context(), template(widgets, "default", "dry-run"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil
	})
}

// awaitNoWidgets returns when their definition is gone.
func (a *act) awaitNoWidgets() {
	a.t.Helper()
	eventually(a.t.Context(), a.t, "the CRD to be gone", func() bool {
		_, err := a.in(crds).Get(a.t.Context(), "widgets.example.kuberewind.dev", metav1.GetOptions{})
		return err != nil
	})
}

// lines runs a query of one text column.
func (w *world) lines(t *testing.T, sql string, args ...any) []string {
	t.Helper()
	rows, err := w.db.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return found
}

const widgetRows = `SELECT type || ' ' || name || ' ' || uid FROM kuberewind.deltas WHERE resource = 'widgets' ORDER BY seq`

func (w *world) awaitLines(t *testing.T, want []string, sql string, args ...any) {
	t.Helper()
	var got []string
	eventually(t.Context(), t, fmt.Sprintf("%q by %s", want, sql), func() bool {
		got = w.lines(t, sql, args...)
		return len(got) >= len(want)
	})
	require.Equal(t, want, got)
}

func TestAResourceThatAppearsVanishesAndComesBackIsRecordedWholly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
	a := w.act(t)

	a.create(crds, widgetCRD())
	a.awaitWidgets()
	first := a.create(widgets, template(widgets, "default", "one"))
	want := []string{"Added one " + string(first.GetUID())}
	w.awaitLines(t, want, widgetRows)

	a.delete(crds, "widgets.example.kuberewind.dev")
	want = append(want, "Deleted one "+string(first.GetUID()))
	w.awaitLines(t, want, widgetRows)
	a.awaitNoWidgets()

	a.create(crds, widgetCRD())
	a.awaitWidgets()
	second := a.create(widgets, template(widgets, "default", "one"))
	want = append(want, "Added one "+string(second.GetUID()))
	w.awaitLines(t, want, widgetRows)
	require.NotEqual(t, first.GetUID(), second.GetUID())

	require.Equal(t, []string{string(first.GetUID()), string(second.GetUID())},
		w.lines(t, `SELECT uid FROM kuberewind.objects WHERE resource = 'widgets' ORDER BY object_id`))
	require.Empty(t, w.lines(t, `SELECT cause FROM kuberewind.gaps WHERE resource = 'widgets' AND outcome IS DISTINCT FROM 'resumed'`),
		"nothing of it was missed")
	recorder.Terminate(t)
}

func TestWhatIsMadeAndUsedWhileNoRecorderRunsIsRecordedFromItsFirstInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
	recorder.Terminate(t)

	a := w.act(t)
	a.create(crds, widgetCRD())
	a.awaitWidgets()
	one := a.create(widgets, template(widgets, "default", "one"))
	two := a.create(widgets, template(widgets, "default", "two"))
	a.delete(widgets, "one")
	// More than a few revisions, so that what a watch can no longer be told is not found by luck.
	for i := range 100 {
		a.create(configMaps, template(configMaps, "default", fmt.Sprint("other-", i)))
	}

	recorder = w.record(t)
	w.awaitLines(t, []string{"Added one " + string(one.GetUID()), "Added two " + string(two.GetUID()), "Deleted one " + string(one.GetUID())}, widgetRows)
	require.Empty(t, w.lines(t, `SELECT cause FROM kuberewind.gaps WHERE resource = 'widgets'`), "etcd had all of it")
	recorder.Terminate(t)
}

// The record of a recorder that was killed when it had written the definition and not begun with its resource.
func TestAResourceOfWhichOnlyTheDefinitionIsOnRecordIsRecordedFromItsFirstInstance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
	a := w.act(t)
	a.create(crds, widgetCRD())
	a.awaitWidgets()
	// The position is past a revision when the next is recorded.
	for n := range 2 {
		a.merge(crds, "widgets.example.kuberewind.dev", fmt.Sprintf(`{"metadata":{"annotations":{"example.dev/n":"%d"}}}`, n))
	}
	defined, err := a.in(crds).Get(t.Context(), "widgets.example.kuberewind.dev", metav1.GetOptions{})
	require.NoError(t, err)
	w.awaitLines(t, []string{defined.GetResourceVersion()}, `SELECT resource_version FROM kuberewind.deltas WHERE resource = 'customresourcedefinitions' AND resource_version = $1`,
		defined.GetResourceVersion())
	w.awaitLines(t, []string{"widgets"}, `SELECT resource FROM kuberewind.streams WHERE resource = 'widgets' AND position IS NOT NULL`)
	recorder.Terminate(t)
	_, err = w.db.Exec(t.Context(), `DELETE FROM kuberewind.streams WHERE resource = 'widgets'`)
	require.NoError(t, err)

	one := a.create(widgets, template(widgets, "default", "one"))
	a.delete(widgets, "one")
	recorder = w.record(t)
	w.awaitLines(t, []string{"Added one " + string(one.GetUID()), "Deleted one " + string(one.GetUID())}, widgetRows)
	require.Empty(t, w.lines(t, `SELECT cause FROM kuberewind.gaps WHERE resource = 'widgets'`))
	recorder.Terminate(t)
}

// ownEvents are those that a recorder wrote about itself, be it before the first list of Events or after it.
const ownEvents = `SELECT (object->>'type') || ' ' || (object->>'reason') FROM kuberewind.deltas
	WHERE resource = 'events' AND type IN ('Added', 'Sync') AND object->'source'->>'component' = 'kuberewind-recorder' ORDER BY 1`

func TestAResourceThatVanishedWhileItWasWatchedIsComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.extra = []string{"--event-namespace", "default"}
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
	a := w.act(t)
	const gaps = `SELECT cause || ' ' || coalesce(outcome, 'open') FROM kuberewind.gaps WHERE resource = 'widgets' ORDER BY gap`

	a.create(crds, widgetCRD())
	a.awaitWidgets()
	first := a.create(widgets, template(widgets, "default", "one"))
	a.delete(crds, "widgets.example.kuberewind.dev")
	a.awaitNoWidgets()
	eventually(t.Context(), t, "the end of the gap", func() bool { return slices.Equal(w.lines(t, gaps), []string{"not_found resumed"}) })
	require.Empty(t, w.lines(t, `SELECT cause FROM kuberewind.coverage WHERE resource = 'widgets' AND NOT complete`))

	a.create(crds, widgetCRD())
	a.awaitWidgets()
	second := a.create(widgets, template(widgets, "default", "two"))
	w.awaitLines(t, []string{"Added one " + string(first.GetUID()), "Deleted one " + string(first.GetUID()), "Added two " + string(second.GetUID())}, widgetRows)
	require.Equal(t, []string{"not_found resumed"}, w.lines(t, gaps))
	require.Equal(t, []string{"live"}, w.lines(t, `SELECT state FROM kuberewind.streams WHERE resource = 'widgets'`))
	// The recorder has told of it, and what it told is on record and has no consequences. It may have opened and closed the gap in one commit.
	w.awaitLines(t, []string{"Normal GapClosed", "Normal LeaderElected"}, `SELECT * FROM (`+ownEvents+`) AS own (said) WHERE said <> 'Warning GapOpened'`)
	recorder.Terminate(t)
}

func TestAResourceThatEndedWhileNoRecorderRanIsKnownToHaveEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
	a := w.act(t)
	a.create(crds, widgetCRD())
	a.awaitWidgets()
	first := a.create(widgets, template(widgets, "default", "one"))
	added, deleted := "Added one "+string(first.GetUID()), "Deleted one "+string(first.GetUID())
	w.awaitLines(t, []string{added}, widgetRows)
	recorder.Terminate(t)

	a.delete(crds, "widgets.example.kuberewind.dev")
	a.awaitNoWidgets()
	const gaps = `SELECT concat_ws(' ', cause, outcome, vanished) FROM kuberewind.gaps WHERE resource = 'widgets'`
	for range 2 { // it is said once
		recorder = w.record(t)
		recorder.AwaitReady(t)
		w.awaitLines(t, []string{added, deleted}, widgetRows)
		require.Equal(t, []string{"inferred"}, w.lines(t, `SELECT source FROM kuberewind.deltas WHERE resource = 'widgets' AND type = 'Deleted'`))
		require.Equal(t, []string{"not_found relisted 1"}, w.lines(t, gaps))
		recorder.Terminate(t)
	}

	recorder = w.record(t)
	recorder.AwaitReady(t)
	a.create(crds, widgetCRD())
	a.awaitWidgets()
	second := a.create(widgets, template(widgets, "default", "two"))
	w.awaitLines(t, []string{added, deleted, "Added two " + string(second.GetUID())}, widgetRows)
	require.Len(t, w.lines(t, gaps), 1)
	recorder.Terminate(t)
}

func TestAResourceThatAppearedWhileNoRecorderRanIsRecordedFromItsFirstObject(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"": false, "though the API server has forgotten it": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			recorder := w.record(t)
			recorder.AwaitReady(t)
			w.connect(t)
			recorder.Terminate(t)

			a := w.act(t)
			a.create(crds, widgetCRD())
			a.awaitWidgets()
			gone := a.create(widgets, template(widgets, "default", "gone"))
			a.delete(widgets, "gone")
			if restart {
				require.NoError(t, w.plane.APIServer.Restart(t.Context()))
			}

			recorder = w.record(t)
			recorder.AwaitReady(t)
			w.awaitLines(t, []string{"Added gone " + string(gone.GetUID()), "Deleted gone " + string(gone.GetUID())}, widgetRows)
			require.Empty(t, w.lines(t, `SELECT cause FROM kuberewind.gaps WHERE resource = 'widgets'`), "etcd had it all")
			require.Empty(t, w.lines(t, `SELECT resource || ' ' || cause FROM kuberewind.gaps WHERE cause <> 'first_list'`))
			recorder.Terminate(t)
		})
	}
}

func TestAnotherServedVersionIsOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
	a := w.act(t)
	a.create(crds, widgetCRD())
	a.awaitWidgets()
	a.create(widgets, template(widgets, "default", "one"))
	const version = `SELECT version FROM kuberewind.streams WHERE resource = 'widgets'`
	w.awaitLines(t, []string{"v1"}, version)

	a.merge(crds, "widgets.example.kuberewind.dev", `{"spec":{"versions":[
		{"name":"v1","served":false,"storage":false,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
		{"name":"v2","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}}`)
	w.awaitLines(t, []string{"Added v1", "Sync v2"}, `SELECT type || ' ' || version FROM kuberewind.deltas WHERE resource = 'widgets' ORDER BY seq`)
	require.Equal(t, []string{"v2"}, w.lines(t, version))
	recorder.Terminate(t)
}

func TestOtherRulesEndNoLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.connect(t)
	a := w.act(t)
	under := func(rules ...string) {
		t.Helper()
		w.extra = rules
		recorder := w.record(t)
		recorder.AwaitReady(t)
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
	recorder := w.record(t)
	recorder.AwaitReady(t)
	a.create(configMaps, template(configMaps, "default", "new"))
	a.delete(configMaps, "of-a")
	w.awaitLines(t, append(want, "Deleted of-a"), rows)
	recorder.Terminate(t)
}

func TestWhatTheServerSaysOfItselfIsOnRecordWheneverItChanges(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
	const changed = `SELECT count(*)::text FROM kuberewind.server WHERE path = '/apis'`
	const schemas = `SELECT path FROM kuberewind.server WHERE path = ANY ($1) ORDER BY path`
	wanted := []string{"/api", "/apis", "/openapi/v3/apis/apps/v1", "/version"}
	w.awaitLines(t, wanted, `SELECT DISTINCT path FROM kuberewind.server WHERE path = ANY ($1) ORDER BY path`, wanted)
	before := w.lines(t, changed)

	a := w.act(t)
	a.create(crds, widgetCRD())
	own := []string{"/openapi/v3/apis/example.kuberewind.dev/v1"}
	w.awaitLines(t, own, schemas, own)
	require.NotEqual(t, before, w.lines(t, changed), "discovery changed, and that is on record")
	recorder.Terminate(t)
}

func TestALifeIsRecordedOrLeftOutAsItWasFirstSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.extra = []string{"--exclude", "configmaps?private", "--exclude", "*/kube-*", "--exclude", "leases"}
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
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

	recorder = w.record(t)
	recorder.AwaitReady(t)
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
	recorder = w.record(t)
	recorder.AwaitReady(t)
	require.NotEmpty(t, w.lines(t, `SELECT resource FROM kuberewind.gaps WHERE cause = 'configuration' AND resource = 'configmaps'`),
		"what the filter now lets in was not followed before: that is on record")
	require.NotEmpty(t, w.lines(t, `SELECT name FROM kuberewind.deltas WHERE resource = 'configmaps' AND namespace LIKE 'kube-%'`))
	recorder.Terminate(t)
}

func TestTheRecordersLoginCannotChangeWhatIsOnRecord(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
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
	w := newWorld(t)
	w.extra = []string{"--checkpoint-every", "50"}
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
	recorder.Terminate(t)

	// It looks at its start, and from then on once a minute.
	recorder = w.record(t)
	eventually(t.Context(), t, "a checkpoint", func() bool {
		return len(w.lines(t, `SELECT checkpoint::text FROM kuberewind.record_checkpoints`)) == 1
	})
	record, err := history.Open(t.Context(), w.database, history.Options{})
	require.NoError(t, err)
	defer record.Close()
	point, err := record.Resolve(t.Context(), history.Now(), history.Scope{})
	require.NoError(t, err)
	rebuilt := w.rebuild(t, record, point, history.Scope{})
	require.NotEmpty(t, rebuilt)
	require.Equal(t, 1, w.fromCheckpoint)
	recorder.Terminate(t)
}

func TestTheWriterIsNamedAlsoWhereManyWriteWithinOneSecond(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	recorder := w.record(t)
	recorder.AwaitReady(t)
	w.connect(t)
	in := w.act(t).in(deployments)
	want := map[string]string{}
	wrote := func(manager string, o *unstructured.Unstructured, err error) {
		require.NoError(t, err)
		want[o.GetResourceVersion()] = manager
	}
	created, err := in.Create(t.Context(), template(deployments, "default", "web"), metav1.CreateOptions{FieldManager: "applier"})
	wrote("applier/", created, err)
	patch := func(manager, body string, subresources ...string) {
		o, err := in.Patch(t.Context(), "web", types.MergePatchType, []byte(body), metav1.PatchOptions{FieldManager: manager}, subresources...)
		require.NoError(t, err)
		if len(subresources) > 0 && subresources[0] == "scale" {
			o, err = in.Get(t.Context(), "web", metav1.GetOptions{}) // what came back is a Scale
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
		for _, line := range w.lines(t, `SELECT resource_version || ' ' || manager || '/' || coalesce(subresource, '') FROM kuberewind.deltas WHERE resource = 'deployments'`) {
			rv, manager, _ := strings.Cut(line, " ")
			got[rv] = manager
		}
		return len(got) >= len(want)
	})
	require.Equal(t, want, got)
	recorder.Terminate(t)
}
