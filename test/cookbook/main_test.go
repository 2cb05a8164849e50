// Package cookbook_test proves docs/cookbook.md: it plays a scenario on a real API server, has the shipped recorder record it into
// a real PostgreSQL, runs every query of the page with psql as an auditor's login, and compares what psql prints with what the
// page shows. With -args -update the page is written again.
package cookbook_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/kuberewind/kuberewind/internal/pgtest"
)

// recorderBinary is built once for all tests, as it is shipped.
var recorderBinary string

var update = flag.Bool("update", false, "write the outputs of docs/cookbook.md again")

func TestMain(m *testing.M) {
	// The surroundings must not decide which cluster is recorded, nor how psql writes.
	for _, name := range []string{"KUBECONFIG", "PGOPTIONS", "PGTZ", "PGDATESTYLE", "PSQLRC", "PAGER"} {
		os.Unsetenv(name)
	}
	pgtest.Main(withBinary{m})
}

// withBinary has the binary for as long as the tests run.
type withBinary struct{ m *testing.M }

// Run implements goleak.TestingM.
func (w withBinary) Run() int {
	dir, err := os.MkdirTemp("", "kuberewind-cookbook-")
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
