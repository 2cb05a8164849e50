// Package system_test runs whole systems: the recorder's binary against a real API server with etcd and a real PostgreSQL.
package system_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// recorderBinary is built once for all tests, as it is shipped.
var recorderBinary string

func TestMain(m *testing.M) { pgtest.Main(withBinary{m}) }

// withBinary has the binary for as long as the tests run.
type withBinary struct{ m *testing.M }

func (w withBinary) Run() int {
	dir, err := os.MkdirTemp("", "kuberewind-system-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	recorderBinary = filepath.Join(dir, "recorder")
	build := exec.Command("go", "build", "-o", recorderBinary, "../../cmd/recorder")
	build.Stdout, build.Stderr = os.Stderr, os.Stderr
	if err := build.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build the recorder:", err)
		return 1
	}
	return w.m.Run()
}
