package controlplane_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/controlplane/binaries"
)

func TestADeploymentBecomesPodsThatRun(t *testing.T) {
	if _, err := binaries.Find(binaries.Full...); errors.Is(err, binaries.ErrMissing) {
		t.Skipf("the programs of the full control plane are optional: %v", err)
	}
	plane := controlplane.ForTest(t, controlplane.Options{})
	_, err := plane.StartWorkloads(t.Context(), controlplane.WorkloadOptions{Nodes: 2})
	require.NoError(t, err)

	client := clientOf(t, plane.Config())
	labels := map[string]string{"app": "web"}
	replicas := int32(3)
	watching, err := client.AppsV1().Deployments("default").Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	defer watching.Stop()
	_, err = client.AppsV1().Deployments("default").Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	for event := range watching.ResultChan() {
		deployment, is := event.Object.(*appsv1.Deployment)
		require.True(t, is, "%v", event.Object)
		if deployment.Status.AvailableReplicas == replicas {
			return
		}
	}
	t.Fatal("the watch ended before the Pods ran")
}
