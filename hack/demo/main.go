// Command demo shows the recorder at work: it starts a control plane of its own, records it into the embedded PostgreSQL
// while somebody deploys, scales, changes an image, edits a ConfigMap and deletes, and shows what was recorded.
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

func run(ctx context.Context, bin string) (err error) {
	say("Starting a control plane: etcd and kube-apiserver, nothing else.")
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	kubeconfig, err := plane.Kubeconfig()
	if err != nil {
		return err
	}

	d := &demo{
		recorder: filepath.Join(bin, "recorder"),
		replay:   filepath.Join(bin, "replay"),
		dataDir:  filepath.Join(config.Default().DataDir, "demo"),
		cluster:  "demo-" + time.Now().UTC().Format("20060102-150405"),
		kubectl:  plane.Kubectl(), kubeconfig: kubeconfig,
	}
	say("Starting the recorder on its embedded PostgreSQL in %s.", d.dataDir)
	recording, err := d.record(ctx)
	if err != nil {
		return err
	}
	err = d.show(ctx, recording)
	if stopErr := recording.stop(); stopErr != nil {
		return errors.Join(err, stopErr)
	}
	if err != nil {
		return err
	}
	d.next()
	return nil
}

func say(format string, args ...any) { fmt.Printf("\n==> "+format+"\n", args...) }
