package binaries

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// lockPoll is how often a second builder looks whether the first has finished.
const lockPoll = 200 * time.Millisecond

// Build makes the named files where Find finds them and returns their folder. What is there already is kept. It
// writes a line per file, and what the go command says, to progress. One source tree is built by one caller at a
// time; others wait until ctx ends.
func Build(ctx context.Context, progress io.Writer, names ...string) (string, error) {
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
	cache, err := writableCache(progress)
	if err != nil {
		return "", err
	}
	sum, err := sourceHash(root)
	if err != nil {
		return "", err
	}
	b := &builder{root: root, dir: filepath.Join(cache, "control-plane", sum), progress: progress}
	return b.dir, b.build(ctx, names)
}

// builder makes files in one folder of the cache.
type builder struct {
	root     string // of the source tree
	dir      string // of the finished files
	staging  string // inside dir, so that a rename from it is atomic
	progress io.Writer
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
	// What a killed build left behind is of no use.
	if err := os.RemoveAll(b.staging); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.staging) }() // the next build does it otherwise
	if err := os.Mkdir(b.staging, 0o755); err != nil {
		return err
	}
	return b.makeAll(ctx, missing(b.dir, names))
}

func (b *builder) acquire(ctx context.Context, lock *flock.Flock) error {
	if held, err := lock.TryLock(); held || err != nil {
		return err
	}
	say(b.progress, "another build is under way in %s; waiting for it\n", b.dir)
	_, err := lock.TryLockContext(ctx, lockPoll)
	return err
}

func (b *builder) makeAll(ctx context.Context, absent []string) error {
	for i, name := range absent {
		say(b.progress, "[%d/%d] building %s (a first build takes minutes)\n", i+1, len(absent), name)
		start := time.Now()
		if err := b.makeOne(ctx, name); err != nil {
			return fmt.Errorf("building %s: %w", name, err)
		}
		say(b.progress, "[%d/%d] built %s in %s\n", i+1, len(absent), name, time.Since(start).Round(100*time.Millisecond))
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

// say tells a person; that nobody may be reading is no reason to fail.
func say(progress io.Writer, format string, values ...any) {
	_, _ = fmt.Fprintf(progress, format, values...)
}
