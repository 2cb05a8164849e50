// Command scene plays the story of internal/scene on a real control plane, with scheduler, controller manager and kwok. It keeps the
// responses of the API server, and its audit log.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/klauspost/compress/zstd"
	"k8s.io/client-go/discovery"

	"github.com/kuberewind/kuberewind/bench/capture"
	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/hack/scene/play"
	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/scene"
	"github.com/kuberewind/kuberewind/internal/scene/record"
)

func main() {
	dir := flag.String("o", filepath.Join("internal", "scene", "record", "testdata"), "folder for the recording and the audit log")
	pace := flag.Float64("pace", 1, "how many seconds of the story pass in one second: 1 takes ten minutes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *dir, *pace); err != nil {
		fmt.Fprintln(os.Stderr, "scene:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, pace float64) (err error) {
	if pace <= 0 {
		return fmt.Errorf("-pace is %v; give a number above 0", pace)
	}
	var users []controlplane.User
	for _, name := range scene.Users() {
		users = append(users, controlplane.User{Name: name, Groups: []string{"system:masters"}})
	}
	fmt.Fprintln(os.Stderr, "scene: starting a control plane")
	plane, err := controlplane.Start(ctx, controlplane.Options{APIServer: controlplane.APIServerOptions{Audit: true, AuditWrites: true}, Users: users})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, plane.Stop()) }()
	if _, err := plane.StartWorkloads(ctx, controlplane.WorkloadOptions{Nodes: scene.Nodes, Stages: scene.Stages}); err != nil {
		return err
	}
	said, err := newServed(plane.Config())
	if err != nil {
		return err
	}
	set, cleanup, err := recordStory(ctx, &play.Player{Plane: plane, Pace: pace, Log: os.Stderr, After: said.look})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cleanup()) }()
	return write(dir, plane, set, said.all)
}

// recordStory plays the story and captures all responses.
func recordStory(ctx context.Context, p *play.Player) (_ data.Set, cleanup func() error, err error) {
	work, err := os.MkdirTemp("", "kuberewind-scene-")
	if err != nil {
		return nil, nil, err
	}
	cleanup = func() error { return os.RemoveAll(work) }
	if err := p.After(ctx); err != nil {
		return nil, nil, errors.Join(err, cleanup())
	}
	captured, err := capture.Start(ctx, p.Plane.Config(), work)
	if err != nil {
		return nil, nil, errors.Join(err, cleanup())
	}
	playing := p.Story(ctx)
	set, err := captured.Stop()
	if err = errors.Join(playing, err); err != nil {
		return nil, nil, errors.Join(err, cleanup())
	}
	return set, cleanup, nil
}

func write(dir string, plane *controlplane.ControlPlane, set data.Set, said []record.Document) error {
	client, err := discovery.NewDiscoveryClientForConfig(plane.Config())
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := data.Write(filepath.Join(dir, "scene.zst"), set, version.GitVersion); err != nil {
		return err
	}
	if err := record.WriteServed(dir, said); err != nil {
		return err
	}
	return pack(plane.APIServer.AuditLog(), filepath.Join(dir, "audit.zst"))
}

// pack compresses a file.
func pack(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	packed, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		return err
	}
	_, err = io.Copy(packed, in)
	return errors.Join(err, packed.Close())
}
