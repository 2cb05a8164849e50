package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/gofrs/flock"

	"github.com/kuberewind/kuberewind/internal/progress"
)

// lockPoll is how often a second builder looks whether the first has finished.
const lockPoll = 200 * time.Millisecond

// Options say how programs are made.
type Options struct {
	// Progress gets a line at least every five seconds.
	Progress io.Writer
	// Index is the address of an index in setup-envtest's form, by which kube-apiserver, etcd and kubectl are downloaded. Empty
	// is the tree's own, whose hashes are pinned. NoDownload has all programs built.
	Index string
}

// Build makes the named files where Find finds them and returns their folder. Existing programs are kept. kube-apiserver, etcd
// and kubectl are downloaded if kube-apiserver is missing. If that fails or takes too long, they are built. One source tree is
// built by one caller at a time; others wait until ctx ends.
func Build(ctx context.Context, options Options, names ...string) (string, error) {
	if os.Getenv(overrideVariable) != "" {
		return Find(names...)
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	if dir, err := findBuilt(root, names); !errors.Is(err, ErrMissing) {
		return dir, err
	}
	told, stop := progress.Watch(options.Progress)
	defer stop()
	cache, err := writableCache(told)
	if err != nil {
		return "", err
	}
	sum, err := sourceHash(root)
	if err != nil {
		return "", err
	}
	b := &builder{
		root: root, dir: filepath.Join(cache, "control-plane", sum), progress: told, index: options.Index,
		patience: patience{stalled: 20 * time.Second, whole: 3 * time.Minute},
	}
	return b.dir, b.build(ctx, names)
}

// builder makes files in one folder of the cache.
type builder struct {
	root     string // of the source tree
	dir      string // of the finished files
	staging  string // inside dir, so that a rename from it is atomic
	index    string
	patience patience
	progress *progress.Progress
}

func (b *builder) build(ctx context.Context, names []string) error {
	if err := os.MkdirAll(b.dir, 0o755); err != nil {
		return err
	}
	lock := flock.New(filepath.Join(b.dir, ".lock"))
	if err := b.acquire(ctx, lock); err != nil {
		return fmt.Errorf("waiting for another build in %s: %w", b.dir, err)
	}
	defer func() { _ = lock.Close() }() // the kernel gives it up at the latest when this process ends
	b.staging = filepath.Join(b.dir, ".building")
	// The leftovers of a killed build are of no use.
	if err := b.removeStaging(); err != nil {
		return err
	}
	defer func() { _ = b.removeStaging() }() // the next build does it otherwise
	if err := os.Mkdir(b.staging, 0o755); err != nil {
		return err
	}
	return b.makeAll(ctx, missing(b.dir, names))
}

// removeStaging also removes the folders that setup-envtest protects from writing.
func (b *builder) removeStaging() error {
	protected, err := filepath.Glob(filepath.Join(b.staging, "envtest", "k8s", "*"))
	if err != nil {
		return err
	}
	for _, dir := range protected {
		if err := os.Chmod(dir, 0o755); err != nil {
			return err
		}
	}
	return os.RemoveAll(b.staging)
}

func (b *builder) acquire(ctx context.Context, lock *flock.Flock) error {
	if held, err := lock.TryLock(); held || err != nil {
		return err
	}
	b.progress.Begin("waiting for another build in %s", b.dir)
	_, err := lock.TryLockContext(ctx, lockPoll)
	return err
}

func (b *builder) makeAll(ctx context.Context, absent []string) error {
	if b.index != NoDownload && slices.Contains(absent, APIServer) {
		err := b.download(ctx, absent)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			b.progress.Say("cannot download the control plane, so it is built, which takes minutes: %v\n", err)
		}
		absent = missing(b.dir, absent)
	}
	for i, name := range absent {
		b.progress.Begin("[%d/%d] building %s", i+1, len(absent), name)
		if err := b.makeOne(ctx, name); err != nil {
			return fmt.Errorf("building %s: %w", name, err)
		}
		b.progress.End("[%d/%d] built %s", i+1, len(absent), name)
	}
	return nil
}

// makeOne makes the file in the staging folder and renames it into place.
func (b *builder) makeOne(ctx context.Context, name string) error {
	target := filepath.Join(b.staging, name)
	if name == KwokStages {
		if err := b.writeStages(ctx, target); err != nil {
			return err
		}
	} else if err := b.compile(ctx, name, target); err != nil {
		return err
	}
	return os.Rename(target, filepath.Join(b.dir, name))
}
