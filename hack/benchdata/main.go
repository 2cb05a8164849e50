// Command benchdata records a real control plane for the benchmarks. It starts one with scheduler, controller manager and kwok.
// It creates and deletes Deployments, Jobs and Nodes for some time. It keeps the raw bytes of all lists and watches in one file.
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

	"k8s.io/client-go/kubernetes"

	"github.com/kuberewind/kuberewind/bench/capture"
	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/internal/controlplane"
)

func main() {
	var s settings
	flag.StringVar(&s.path, "o", filepath.Join("bin", "bench-recording.zst"), "the file")
	flag.DurationVar(&s.duration, "for", 10*time.Minute, "how long")
	flag.IntVar(&s.nodes, "nodes", 30, "how many Nodes there are")
	flag.IntVar(&s.deployments, "deployments", 150, "how many Deployments there are, of one to nine Pods each")
	flag.Uint64Var(&s.seed, "seed", 1, "of what is done to them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := record(ctx, s); err != nil {
		fmt.Fprintln(os.Stderr, "benchdata:", err)
		stop()
		os.Exit(1)
	}
}

type settings struct {
	path               string
	duration           time.Duration
	nodes, deployments int
	seed               uint64
}

func say(format string, args ...any) { fmt.Fprintf(os.Stderr, "benchdata: "+format+"\n", args...) }

func record(ctx context.Context, s settings) (err error) {
	say("starting a control plane with %d Nodes", s.nodes)
	// Events expire while they are recorded: their hour is longer than a recording.
	plane, err := controlplane.Start(ctx, controlplane.Options{APIServer: controlplane.APIServerOptions{Args: []string{"--event-ttl=2m"}}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if _, err := plane.StartWorkloads(ctx, controlplane.WorkloadOptions{Nodes: s.nodes}); err != nil {
		return err
	}
	config := plane.Config()
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c := newChurn(client, s.seed)
	say("making %d Deployments", s.deployments)
	if err := c.populate(ctx, s.deployments); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kuberewind-benchdata-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	captured, err := capture.Start(ctx, config, dir)
	if err != nil {
		return err
	}
	say("recording for %s", s.duration)
	churning := c.run(ctx, s.duration)
	set, err := captured.Stop()
	if err := errors.Join(churning, err); err != nil {
		return err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.path), 0o755); err != nil {
		return err
	}
	if err := data.Write(s.path, set, version.GitVersion); err != nil {
		return err
	}
	description, err := data.Describe(set)
	if err != nil {
		return err
	}
	return description.Table(os.Stdout)
}
