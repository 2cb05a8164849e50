// Package replay_test runs whole systems: a real API server with etcd, the recorder's binary, a real PostgreSQL, and replay beside the
// real kubectl.
package replay_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// The programs, built once for all tests, as they are shipped.
var recorderBinary, replayBinary string

func TestMain(m *testing.M) { pgtest.Main(withBinaries{m}) }

// withBinaries has the programs for as long as the tests run.
type withBinaries struct{ m *testing.M }

func (w withBinaries) Run() int {
	dir, err := os.MkdirTemp("", "kuberewind-replay-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	recorderBinary, replayBinary = filepath.Join(dir, "recorder"), filepath.Join(dir, "replay")
	build := exec.Command("go", "build", "-o", dir+"/", "../../cmd/recorder", "../../cmd/replay")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the programs:", err)
		return 1
	}
	return w.m.Run()
}
