// Package cookbook_test proves docs/cookbook.md. It plays a scenario on a real API server, and has the shipped recorder record
// it into a real PostgreSQL. It runs every query of the page with psql as an auditor's login, and compares the output with the
// page. It runs the commands of replay that the page names, and those of docs/cheatsheet.md. With -args -update the page is
// written again.
package cookbook_test

import (
	"flag"
	"os"
	"testing"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

var update = flag.Bool("update", false, "write the outputs of docs/cookbook.md again")

func TestMain(m *testing.M) {
	// The surroundings must not decide how psql writes.
	for _, name := range []string{"PGOPTIONS", "PGTZ", "PGDATESTYLE", "PSQLRC", "PAGER"} {
		os.Unsetenv(name)
	}
	recordertest.Main(m, "recorder", "replay")
}
