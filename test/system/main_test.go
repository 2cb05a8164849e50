// Package system_test runs whole systems: the recorder's binary against a real API server with etcd and a real PostgreSQL.
package system_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func TestMain(m *testing.M) {
	pgtest.Parallel(3) // each with a control plane
	recordertest.Main(withPool{m}, "recorder")
}

// withPool stops the control planes that tests were lent, before goroutines are counted.
type withPool struct{ tests *testing.M }

// Run implements goleak.TestingM.
func (w withPool) Run() int {
	code := w.tests.Run()
	if err := pool.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, "control planes:", err)
		code = max(code, 1)
	}
	return code
}

var pool = controlplane.Pool{Options: planeOptions, Restore: restore}

// restore takes away what tests make that are lent a control plane.
func restore(ctx context.Context, plane *controlplane.ControlPlane) error {
	client, err := dynamic.NewForConfig(plane.Config())
	if err != nil {
		return err
	}
	a := act{client: client}
	// Delete definitions one by one: if one request deletes several, their objects stay.
	there, err := a.in(crds).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, o := range there.Items {
		if err := a.in(crds).Delete(ctx, o.GetName(), noGrace()); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for _, gvr := range []schema.GroupVersionResource{configMaps, secrets, pods, events, leases, deployments} {
		if err := a.in(gvr).DeleteCollection(ctx, noGrace(), metav1.ListOptions{}); err != nil {
			return err
		}
	}
	return wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		left, err := a.in(crds).List(ctx, metav1.ListOptions{})
		return err == nil && len(left.Items) == 0, nil
	})
}

// patience is how long anything may take.
const patience = recordertest.Patience

func eventually(ctx context.Context, t *testing.T, what string, condition func() bool) {
	t.Helper()
	recordertest.Eventually(ctx, t, what, condition)
}
