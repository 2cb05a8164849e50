// Command controller is a manager of controller-runtime, as the controllers of many clusters are. It knows nothing of kuberewind. Its one
// controller wants each Deployment to have three replicas or more.
//
// On the past it shows what it would have done. See docs/api.md, "Try a controller against last night":
//
//	replay serve --intentions intentions.jsonl
//	replay exec --at "yesterday 23:30" -- go run .
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/manager/signals"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func main() {
	elect := flag.Bool("leader-elect", false, "act only as the leader. On the past, no replica can become the leader")
	flag.Parse()
	if err := run(*elect); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(elect bool) error {
	log.SetLogger(logr.FromSlogHandler(slog.NewTextHandler(os.Stderr, nil)))
	kubeconfig, err := config.GetConfig() // of KUBECONFIG, which replay exec sets
	if err != nil {
		return err
	}
	m, err := manager.New(kubeconfig, manager.Options{
		LeaderElection: elect, LeaderElectionID: "at-least-three", LeaderElectionNamespace: "default",
		Metrics: server.Options{BindAddress: "0"}, // none
	})
	if err != nil {
		return err
	}
	if err := builder.ControllerManagedBy(m).For(&appsv1.Deployment{}).Complete(&atLeastThree{m.GetClient()}); err != nil {
		return err
	}
	return m.Start(signals.SetupSignalHandler())
}

// atLeast is how many replicas a Deployment is to have.
const atLeast = 3

// atLeastThree scales Deployments up. Those without replicas are left alone.
type atLeastThree struct{ client.Client }

// Reconcile implements reconcile.Reconciler.
func (a *atLeastThree) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var deployment appsv1.Deployment
	if err := a.Get(ctx, request.NamespacedName, &deployment); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if has := ptr.Deref(deployment.Spec.Replicas, 1); has == 0 || has >= atLeast {
		return reconcile.Result{}, nil
	}
	before := deployment.DeepCopy()
	deployment.Spec.Replicas = ptr.To[int32](atLeast)
	return reconcile.Result{}, a.Patch(ctx, &deployment, client.MergeFrom(before))
}
