package binaries

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/kuberewind/kuberewind/internal/progress"
)

// cacheVariable names the project's cache folder.
const cacheVariable = "KUBEREWIND_CACHE"

// cache is one place where built files may lie.
type cache struct {
	path   string
	chosen bool // named by the user: never passed over
	shared bool // lies in a folder where others may write too: must be proved to be ours
}

// cacheCandidates returns the places in the order in which they are tried.
func cacheCandidates() []cache {
	if path := os.Getenv(cacheVariable); path != "" {
		return []cache{{path: path, chosen: true}}
	}
	var candidates []cache
	if path := os.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(path) {
		candidates = append(candidates, cache{path: filepath.Join(path, "kuberewind")})
	} else if home := os.Getenv("HOME"); filepath.IsAbs(home) {
		candidates = append(candidates, cache{path: filepath.Join(home, ".cache", "kuberewind")})
	}
	last := filepath.Join(os.TempDir(), fmt.Sprintf("kuberewind-%d", os.Getuid()))
	return append(candidates, cache{path: last, shared: true})
}

// writableCache returns the first candidate that can be written, and reports each skipped one to the user.
func writableCache(told *progress.Progress) (string, error) {
	var failures []error
	for _, candidate := range cacheCandidates() {
		err := candidate.prepare()
		if err == nil && candidate.shared {
			told.Say("no home folder can be written; keeping the programs in %s, which the system may clear\n", candidate.path)
		}
		if err == nil {
			return filepath.Abs(candidate.path)
		}
		if candidate.chosen {
			return "", fmt.Errorf("%s cannot be used: %w", cacheVariable, err)
		}
		failures = append(failures, err)
		told.Say("cache %s cannot be used: %v; trying the next place\n", candidate.path, err)
	}
	return "", fmt.Errorf("no place for the built programs; set %s to a folder that can be written: %w", cacheVariable, errors.Join(failures...))
}

// prepare makes the folder and proves that files can be made in it.
func (c cache) prepare() error {
	mode := os.FileMode(0o755)
	if c.shared {
		mode = 0o700
	}
	if err := os.MkdirAll(c.path, mode); err != nil {
		return err
	}
	if !c.trusted() {
		return fmt.Errorf("%s belongs to another user, or others may write there: programs from it must not be run", c.path)
	}
	probe, err := os.CreateTemp(c.path, ".probe-*")
	if err != nil {
		return err
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// trusted reports whether programs in the folder may be run. In a shared temporary folder, each account can make a folder of any
// name and wait until root runs its programs.
func (c cache) trusted() bool {
	if !c.shared {
		return true
	}
	info, err := os.Lstat(c.path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	owner, known := info.Sys().(*syscall.Stat_t)
	return known && int(owner.Uid) == os.Getuid()
}
