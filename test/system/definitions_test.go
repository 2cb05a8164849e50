package system_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAResourceThatAppearsVanishesAndComesBackIsRecordedWholly(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t)
	a := w.act(t)

	a.defineWidgets()
	first := a.create(widgets, template(widgets, "default", "one"))
	want := []string{"Added one " + string(first.GetUID())}
	w.awaitLines(t, want, widgetRows)

	a.delete(crds, "widgets.example.kuberewind.dev")
	want = append(want, "Deleted one "+string(first.GetUID()))
	w.awaitLines(t, want, widgetRows)
	a.awaitNoWidgets()

	a.defineWidgets()
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

func TestAResourceThatIsMadeWhileNoRecorderRunsIsRecordedFromItsFirstInstance(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t)
	recorder.Terminate(t)

	a := w.act(t)
	a.defineWidgets()
	one := a.create(widgets, template(widgets, "default", "one"))
	two := a.create(widgets, template(widgets, "default", "two"))
	a.delete(widgets, "one")
	// More than a few revisions, so that a lost watch event is not found by luck.
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
	w, recorder := recordedLent(t)
	a := w.act(t)
	a.defineWidgets()
	// It is changed after it was created.
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

// ownEvents are the Events that a recorder wrote about itself, before the first list of Events or after it.
const ownEvents = `SELECT (object->>'type') || ' ' || (object->>'reason') FROM kuberewind.deltas
	WHERE resource = 'events' AND type IN ('Added', 'Sync') AND object->'source'->>'component' = 'kuberewind-recorder' ORDER BY 1`

func TestAResourceThatVanishedWhileItWasWatchedIsComplete(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t, "--event-namespace", "default")
	a := w.act(t)
	const gaps = `SELECT cause || ' ' || coalesce(outcome, 'open') FROM kuberewind.gaps WHERE resource = 'widgets' ORDER BY gap`

	a.defineWidgets()
	first := a.create(widgets, template(widgets, "default", "one"))
	a.delete(crds, "widgets.example.kuberewind.dev")
	a.awaitNoWidgets()
	eventually(t.Context(), t, "the end of the gap", func() bool { return slices.Equal(w.lines(t, gaps), []string{"not_found resumed"}) })
	require.Empty(t, w.lines(t, `SELECT cause FROM kuberewind.coverage WHERE resource = 'widgets' AND NOT complete`))

	a.defineWidgets()
	second := a.create(widgets, template(widgets, "default", "two"))
	w.awaitLines(t, []string{"Added one " + string(first.GetUID()), "Deleted one " + string(first.GetUID()), "Added two " + string(second.GetUID())}, widgetRows)
	require.Equal(t, []string{"not_found resumed"}, w.lines(t, gaps))
	require.Equal(t, []string{"live"}, w.lines(t, `SELECT state FROM kuberewind.streams WHERE resource = 'widgets'`))
	// The recorder has announced it, and the announcement is on record and has no consequences. It may have opened and closed
	// the gap in one commit.
	w.awaitLines(t, []string{"Normal GapClosed", "Normal LeaderElected"}, `SELECT * FROM (`+ownEvents+`) AS own (said) WHERE said <> 'Warning GapOpened'`)
	recorder.Terminate(t)
}

func TestAResourceThatEndedWhileNoRecorderRanIsKnownToHaveEnded(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t)
	a := w.act(t)
	a.defineWidgets()
	first := a.create(widgets, template(widgets, "default", "one"))
	added, deleted := "Added one "+string(first.GetUID()), "Deleted one "+string(first.GetUID())
	w.awaitLines(t, []string{added}, widgetRows)
	recorder.Terminate(t)

	a.delete(crds, "widgets.example.kuberewind.dev")
	a.awaitNoWidgets()
	const gaps = `SELECT concat_ws(' ', cause, outcome, vanished) FROM kuberewind.gaps WHERE resource = 'widgets'`
	for range 2 { // it is said once
		recorder = w.recordReady(t)
		w.awaitLines(t, []string{added, deleted}, widgetRows)
		require.Equal(t, []string{"inferred"}, w.lines(t, `SELECT source FROM kuberewind.deltas WHERE resource = 'widgets' AND type = 'Deleted'`))
		require.Equal(t, []string{"not_found relisted 1"}, w.lines(t, gaps))
		recorder.Terminate(t)
	}

	recorder = w.recordReady(t)
	a.defineWidgets()
	second := a.create(widgets, template(widgets, "default", "two"))
	w.awaitLines(t, []string{added, deleted, "Added two " + string(second.GetUID())}, widgetRows)
	require.Len(t, w.lines(t, gaps), 1)

	// The same for objects that lived and died between the record's last row and its end.
	a.delete(widgets, "two")
	w.awaitLines(t, []string{"Deleted two " + string(second.GetUID())}, widgetRows+` OFFSET 3`)
	recorder.Terminate(t)
	third := a.create(widgets, template(widgets, "default", "three"))
	a.delete(widgets, "three")
	a.delete(crds, "widgets.example.kuberewind.dev")
	a.awaitNoWidgets()
	a.defineWidgets()
	recorder = w.recordReady(t)
	w.awaitLines(t, []string{"Added three " + string(third.GetUID()), "Deleted three " + string(third.GetUID())}, widgetRows+` OFFSET 4`)
	require.Len(t, w.lines(t, gaps), 1, "etcd had it all")
	recorder.Terminate(t)
}

func TestADefinitionThatCameAndWentWhileNoRecorderRanIsReadThroughTheNext(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t)
	a := w.act(t)
	const gaps = `SELECT cause || ' ' || coalesce(outcome, 'open') FROM kuberewind.gaps WHERE resource = 'widgets' ORDER BY gap`
	lives := func(o *unstructured.Unstructured) []string {
		return []string{"Added " + o.GetName() + " " + string(o.GetUID()), "Deleted " + o.GetName() + " " + string(o.GetUID())}
	}
	define := func(name string) *unstructured.Unstructured {
		a.defineWidgets()
		return a.create(widgets, template(widgets, "default", name))
	}
	end := func() {
		a.delete(crds, "widgets.example.kuberewind.dev")
		a.awaitNoWidgets()
	}
	vanish := func(complete ...string) { // while it is watched
		end()
		eventually(t.Context(), t, "its end", func() bool { return slices.Equal(w.lines(t, gaps), complete) })
	}
	one := define("one")
	w.awaitLines(t, lives(one)[:1], widgetRows)
	vanish("not_found resumed")
	recorder.Terminate(t)

	two := define("two")
	end()
	three := define("three")
	recorder = w.recordReady(t)
	w.awaitLines(t, slices.Concat(lives(one), lives(two), lives(three)[:1]), widgetRows)
	require.Equal(t, []string{"not_found resumed"}, w.lines(t, gaps), "etcd had it all")
	vanish("not_found resumed", "not_found resumed")
	recorder.Terminate(t)

	// The next comes when it is long on record that there was one in between.
	four := define("four")
	end()
	recorder = w.recordReady(t)
	five := define("five")
	w.awaitLines(t, slices.Concat(lives(one), lives(two), lives(three), lives(four), lives(five)[:1]), widgetRows)
	require.Equal(t, []string{"not_found resumed", "not_found resumed"}, w.lines(t, gaps), "etcd had it all")
	recorder.Terminate(t)
}

func TestAResourceThatAppearedWhileNoRecorderRanIsRecordedFromItsFirstObject(t *testing.T) {
	t.Parallel()
	for name, restart := range map[string]bool{"": false, "though the API server has forgotten it": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, recorder := recordedLent(t)
			recorder.Terminate(t)

			a := w.act(t)
			a.defineWidgets()
			gone := a.create(widgets, template(widgets, "default", "gone"))
			a.delete(widgets, "gone")
			if restart {
				require.NoError(t, w.plane.APIServer.Restart(t.Context()))
			}

			recorder = w.recordReady(t)
			w.awaitLines(t, []string{"Added gone " + string(gone.GetUID()), "Deleted gone " + string(gone.GetUID())}, widgetRows)
			require.Empty(t, w.lines(t, `SELECT cause FROM kuberewind.gaps WHERE resource = 'widgets'`), "etcd had it all")
			require.Empty(t, w.lines(t, `SELECT resource || ' ' || cause FROM kuberewind.gaps WHERE cause <> 'first_list'`))
			recorder.Terminate(t)
		})
	}
}

// The API server is restarted, so that only etcd knows when that was: at the last definition on record the object was there.
func TestAnObjectThatWentWithItsDefinitionIsNotTakenForOneThatHasOutlivedIt(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t)
	a := w.act(t)
	a.defineWidgets()
	one := string(a.create(widgets, template(widgets, "default", "one")).GetUID())
	w.awaitLines(t, []string{"Added one " + one}, widgetRows)
	for _, annotation := range []string{"later", "last"} {
		a.merge(crds, "widgets.example.kuberewind.dev", fmt.Sprintf(`{"metadata":{"annotations":{"%s":"yes"}}}`, annotation))
	}
	w.awaitLines(t, []string{"/metadata/annotations", "/metadata/annotations/last"},
		`SELECT path FROM kuberewind.changes WHERE resource = 'customresourcedefinitions' AND path LIKE '/metadata/annotations%' ORDER BY seq`)
	recorder.Terminate(t)

	a.delete(crds, "widgets.example.kuberewind.dev")
	a.awaitNoWidgets()
	a.defineWidgets()
	two := string(a.create(widgets, template(widgets, "default", "two")).GetUID())
	require.NoError(t, w.plane.APIServer.Restart(t.Context()))
	recorder = w.recordReady(t)
	w.awaitLines(t, []string{"Added one " + one, "Deleted one " + one, "Added two " + two}, widgetRows)
	require.Empty(t, w.lines(t, `SELECT cause FROM kuberewind.gaps WHERE resource = 'widgets' AND cause <> 'first_list'`), "etcd had it all")
	require.Empty(t, w.lines(t, `SELECT name FROM kuberewind.deltas WHERE resource = 'widgets' AND source <> 'watch'`))
	recorder.Terminate(t)
}

// If a definition is deleted without the finalizer, its objects stay in etcd. They are not served until the next definition exists.
func TestObjectsThatOutliveTheirDefinitionAreListedUnderTheNext(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		stopped bool
		args    []string
	}{
		"": {},
		"while no recorder runs, and not all definitions are recorded": {stopped: true, args: []string{"--exclude", "*/kube-system"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, recorder := recordedLent(t, test.args...)
			a := w.act(t)
			const rows = `SELECT concat_ws(' ', type, source, name, uid) FROM kuberewind.deltas WHERE resource = 'widgets' AND name = 'one' ORDER BY seq`
			a.defineWidgets()
			one := string(a.create(widgets, template(widgets, "default", "one")).GetUID())
			want := []string{"Added watch one " + one}
			w.awaitLines(t, want, rows)
			require.NoError(t, a.in(crds).DeleteCollection(t.Context(), noGrace(), metav1.ListOptions{}))
			want = append(want, "Deleted inferred one "+one)
			w.awaitLines(t, want, rows)
			if test.stopped {
				recorder.Terminate(t)
			}
			a.defineWidgets()
			if test.stopped {
				recorder = w.recordReady(t)
			}
			a.create(widgets, template(widgets, "default", "two"))
			w.awaitLines(t, append(want, "Sync relist one "+one), rows)
			w.awaitLines(t, []string{"two"}, `SELECT name FROM kuberewind.objects WHERE resource = 'widgets' AND name = 'two' AND NOT deleted`)
			eventually(t.Context(), t, "the end of the gap", func() bool {
				return slices.Equal(w.lines(t, `SELECT concat_ws(' ', cause, outcome) FROM kuberewind.gaps
					WHERE resource = 'widgets' AND from_rv IS NOT NULL ORDER BY gap DESC LIMIT 1`), []string{"expired relisted"})
			})
			recorder.Terminate(t)
		})
	}
}

func TestAnotherServedVersionIsOnRecord(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t)
	a := w.act(t)
	a.defineWidgets()
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
