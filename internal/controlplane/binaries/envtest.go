package binaries

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// NoDownload as the index has all programs built.
const NoDownload = "none"

// release is the version of Kubernetes that is downloaded: the newest of the minor version that is built for which there is an
// archive. releasesFile has its hashes.
const (
	release      = "1.37.0"
	envtest      = "test/envtest"
	setupEnvtest = "setup-envtest"
	releasesFile = envtest + "/releases.yaml"
)

// patience is how long a download may take before building is the better way.
type patience struct{ stalled, whole time.Duration }

var errStalled = errors.New("no data came")

// download puts kube-apiserver, etcd and kubectl of the pinned release in place, as far as they are absent.
func (b *builder) download(ctx context.Context, absent []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, b.patience.whole, fmt.Errorf("not done after %s", b.patience.whole))
	defer cancel()
	fetcher := filepath.Join(b.staging, setupEnvtest)
	b.progress.Begin("compiling %s", setupEnvtest)
	if err := b.compile(ctx, setupEnvtest, fetcher); err != nil {
		return err
	}
	b.progress.Begin("downloading %s of Kubernetes %s", strings.Join(Minimal, ", "), release)
	dir, err := b.fetch(ctx, fetcher)
	if err != nil {
		return err
	}
	for _, name := range absent {
		err := os.Rename(filepath.Join(dir, name), filepath.Join(b.dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if lacking := missing(b.dir, Minimal); len(lacking) > 0 {
		return fmt.Errorf("the archive has no %s", strings.Join(lacking, ", no "))
	}
	b.progress.End("downloaded Kubernetes %s", release)
	return nil
}

// fetch returns the folder of the unpacked archive, whose hash setup-envtest has compared with the index.
func (b *builder) fetch(ctx context.Context, fetcher string) (string, error) {
	index := b.index
	if index == "" {
		url, stop, err := serve(ctx, filepath.Join(b.root, releasesFile))
		if err != nil {
			return "", err
		}
		defer stop()
		index = url
	}
	dir := filepath.Join(b.staging, "envtest")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var watcher errgroup.Group
	watcher.Go(func() error { b.watchGrowth(ctx, dir, cancel); return nil })
	err := run(ctx, fetcher, dir, index)
	cancel(nil)
	if err := errors.Join(err, watcher.Wait()); err != nil {
		return "", err
	}
	return openFolder(dir)
}

func run(ctx context.Context, fetcher, dir, index string) error {
	command := exec.CommandContext(ctx, fetcher, "use", release, "--index="+index, "--bin-dir="+dir,
		"--os="+runtime.GOOS, "--arch="+runtime.GOARCH, "--installed-only=false", "--use-env=false")
	// The archive is written to TMPDIR: it goes with the staging folder, whatever happens.
	command.Env = append(os.Environ(), "TMPDIR="+dir)
	output, err := command.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return fmt.Errorf("%s: %w: %s", setupEnvtest, err, bytes.TrimSpace(output))
	}
}

// openFolder returns the folder that setup-envtest has made, and undoes its write protection: a file of a folder that its owner
// may not write to cannot be moved.
func openFolder(dir string) (string, error) {
	found, err := filepath.Glob(filepath.Join(dir, "k8s", release+"-*"))
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%s left %d folders of %s", setupEnvtest, len(found), release)
	}
	if err != nil {
		return "", err
	}
	return found[0], os.Chmod(found[0], 0o755)
}

// watchGrowth ends the download when nothing has come for too long.
func (b *builder) watchGrowth(ctx context.Context, dir string, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(min(time.Second, b.patience.stalled/4))
	defer ticker.Stop()
	size, grown := int64(0), time.Now()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if now := sizeOf(dir); now != size {
			size, grown = now, time.Now()
			b.progress.Update("%d MB on disk", size>>20)
		} else if time.Since(grown) > b.patience.stalled {
			cancel(fmt.Errorf("%w for %s", errStalled, b.patience.stalled))
		}
	}
}

// sizeOf adds up the files below dir. Those that come or go meanwhile do not matter.
func sizeOf(dir string) (total int64) {
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			if info, err := entry.Info(); err == nil {
				total += info.Size()
			}
		}
		return nil
	})
	return total
}

// serve offers a file on a loopback port, since setup-envtest reads its index over HTTP only.
func serve(ctx context.Context, path string) (url string, stop func(), err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{ReadHeaderTimeout: 5 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, path)
	})}
	var serving errgroup.Group
	serving.Go(func() error { return server.Serve(listener) })
	return "http://" + listener.Addr().String() + "/" + filepath.Base(path), func() {
		_ = server.Close() // no requests follow
		_ = serving.Wait() // says that it was closed
	}, nil
}
