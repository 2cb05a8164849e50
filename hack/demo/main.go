// Command demo shows the recorder at work. It starts a control plane of its own, and records it into the embedded PostgreSQL.
// Meanwhile it deploys, scales, changes an image, edits a ConfigMap and deletes. Then it shows the recorded history.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/progress"
)

func main() {
	bin := flag.String("bin", "bin", "directory of the built programs")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *bin); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, bin string) error {
	shown, stop := progress.Watch(os.Stdout)
	defer stop()
	d := &demo{
		shown:    shown,
		recorder: filepath.Join(bin, "recorder"),
		replay:   filepath.Join(bin, "replay"),
		dataDir:  filepath.Join(config.Default().DataDir, "demo"),
		cluster:  "demo-" + time.Now().UTC().Format("20060102-150405"),
	}
	if err := d.run(ctx); err != nil {
		return err
	}
	d.next()
	return nil
}

// run stops everything before it returns.
func (d *demo) run(ctx context.Context) (err error) {
	d.begin("Starting a control plane: etcd and kube-apiserver, nothing else.")
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	d.kubectl = plane.Kubectl()
	if d.kubeconfig, err = plane.Kubeconfig(); err != nil {
		return err
	}
	d.begin("Starting the recorder on its embedded PostgreSQL in " + d.dataDir + ".")
	recording, err := d.record(ctx)
	if err != nil {
		return err
	}
	err = d.show(ctx, recording)
	d.begin("Stopping the recorder and the control plane.")
	return errors.Join(err, recording.stop())
}

// begin announces the next step, and repeats the announcement if the step takes long.
func (d *demo) begin(step string) {
	d.shown.Say("\n==> %s\n", step)
	d.shown.Step(step)
}
