package api_test

import (
	_ "embed"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/controlplane/objects"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

//go:embed testdata/busy.yaml
var busy []byte

// runWorkloads has controllers, the scheduler and kwok bring a Deployment to life, and roll it out again. They have ended when it returns.
func (s *system) runWorkloads(t *testing.T, maker *objects.Maker) {
	t.Helper()
	workloads, err := s.plane.StartWorkloads(t.Context(), controlplane.WorkloadOptions{Nodes: 4})
	require.NoError(t, err)
	maker.Apply(busy)
	deployments := maker.Resource(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"}, "busy")
	rolledOut := func() bool {
		web, err := deployments.Get(t.Context(), "web", metav1.GetOptions{})
		require.NoError(t, err)
		generation, _, _ := unstructured.NestedInt64(web.Object, "status", "observedGeneration")
		updated, _, _ := unstructured.NestedInt64(web.Object, "status", "updatedReplicas")
		available, _, _ := unstructured.NestedInt64(web.Object, "status", "availableReplicas")
		replicas, _, _ := unstructured.NestedInt64(web.Object, "status", "replicas")
		return generation == web.GetGeneration() && updated == 20 && available == 20 && replicas == 20
	}
	recordertest.Eventually(t.Context(), t, "the Deployment runs", rolledOut)
	image := []byte(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"registry.example.com/web:2"}]`)
	_, err = deployments.Patch(t.Context(), "web", types.JSONPatchType, image, metav1.PatchOptions{})
	require.NoError(t, err)
	recordertest.Eventually(t.Context(), t, "the Deployment is rolled out", rolledOut)
	for _, each := range []*controlplane.Component{workloads.Kwok, workloads.Scheduler, workloads.ControllerManager} {
		require.NoError(t, each.Stop(t.Context()))
	}
}
