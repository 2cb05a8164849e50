package system_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// defaulted gives the versions of the definition of widgets, with a default for spec.size.
func defaulted(size string) string {
	return fmt.Sprintf(`{"spec":{"versions":[{"name":"v1","served":true,"storage":true,"subresources":{"status":{}},"schema":{"openAPIV3Schema":{
		"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"spec":{
			"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{"size":{"type":"string","default":%q}}}}}}}]}}`, size)
}

// TestContentThatChangesAtTheSameResourceVersionIsFound: a default shows in objects without a new write.
func TestContentThatChangesAtTheSameResourceVersionIsFound(t *testing.T) {
	t.Parallel()
	w, recorder := recordedLent(t, "--include", "widgets.*")
	a := w.act(t)
	a.defineWidgets()
	one := a.create(widgets, template(widgets, "default", "one"))
	w.awaitLines(t, []string{"Added one " + string(one.GetUID())}, widgetRows)

	const rows = `SELECT concat_ws(' ', type, source, coalesce(manager, '-'), resource_version = $1, object #>> '{spec,size}') FROM kuberewind.deltas WHERE resource = 'widgets' ORDER BY seq`
	const definition = "widgets.example.kuberewind.dev"
	a.merge(crds, definition, defaulted("small"))
	want := []string{"Added watch system.test t", "Sync schema - t small"}
	w.awaitLines(t, want, rows, one.GetResourceVersion())

	// Once more, while no recorder runs.
	recorder.Kill(t)
	a.merge(crds, definition, defaulted("large"))
	recorder = w.recordReady(t)
	want = append(want, "Sync schema - t large")
	w.awaitLines(t, want, rows, one.GetResourceVersion())

	a.merge(widgets, "one", `{"spec":{"n":1}}`)
	w.awaitLines(t, append(want, "Updated watch system.test f"), rows, one.GetResourceVersion())
	require.Equal(t, []string{"1 -", "2 small", "3 large", "4 large"}, w.lines(t, `
		SELECT d.seq || ' ' || coalesce(kuberewind.object_at(d.cluster, d.api_group, d.resource, d.namespace, d.name, 'seq:' || d.seq) #>> '{spec,size}', '-')
		FROM kuberewind.deltas d WHERE resource = 'widgets' ORDER BY d.seq`))
	require.Equal(t, []string{}, append([]string{}, w.lines(t, `SELECT cause FROM kuberewind.gaps WHERE resource = 'widgets'`)...), "no relist was needed")
	recorder.Terminate(t)
}
