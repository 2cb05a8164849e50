package system_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/bench/capture"
)

func TestACaptureHasTheObjectsOfAResourceThatIsDefinedAndChangedMeanwhile(t *testing.T) {
	t.Parallel()
	w := lentWorld(t)
	a := w.act(t)
	captured, err := capture.Start(t.Context(), w.plane.Config(), t.TempDir())
	require.NoError(t, err)
	position := func() string { return captured.Position(widgets.GroupResource()) }

	a.defineWidgets()
	eventually(t.Context(), t, "the capture to follow widgets", func() bool { return position() != "" })
	a.create(widgets, template(widgets, "default", "one"))
	two := a.create(widgets, template(widgets, "default", "two"))
	eventually(t.Context(), t, "both widgets", func() bool { return position() == two.GetResourceVersion() })
	// Other revisions come between the last widget and the new storage of the changed definition.
	a.create(configMaps, template(configMaps, "default", "other"))
	a.merge(configMaps, "other", `{"metadata":{"labels":{"a":"b"}}}`)
	a.merge(crds, "widgets.example.kuberewind.dev", `{"spec":{"names":{"shortNames":["wid"]}}}`)
	eventually(t.Context(), t, "the capture to begin at the new storage", func() bool { return position() != two.GetResourceVersion() })
	a.merge(widgets, "one", `{"metadata":{"labels":{"a":"b"}}}`)
	a.delete(widgets, "two")
	a.merge(widgets, "one", `{"metadata":{"labels":{"a":"c"}}}`)
	last, err := a.in(widgets).Get(t.Context(), "one", metav1.GetOptions{})
	require.NoError(t, err)
	eventually(t.Context(), t, "the last version", func() bool { return position() == last.GetResourceVersion() })

	set, err := captured.Stop()
	require.NoError(t, err)
	var got []string
	for e, err := range set.Events() {
		require.NoError(t, err)
		if set.Resources()[e.Resource].Resource == widgets.Resource {
			got = append(got, string(e.Type)+" "+e.Name)
		}
	}
	require.Equal(t, []string{"ADDED one", "ADDED two", "MODIFIED one", "DELETED two", "MODIFIED one"}, got)
}
