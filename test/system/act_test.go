package system_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// act is a user who changes the cluster.
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

// defineWidgets makes their definition.
func (a *act) defineWidgets() {
	a.t.Helper()
	a.create(crds, widgetCRD())
	a.awaitWidgets()
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
