package foreign_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	suites = flag.Bool("suites", false, "run the suites, which takes minutes (make test-foreign)")
	only   = flag.String("only", "", "run only the tests whose names match this regular expression")
	e2e    = flag.String("e2e", "", "the test binary of the module e2e, whose specs are run too")
	kept   = flag.String("keep", "", "keep what the tests say in this folder")
)

// TestForeignSuitesPassOnThePast runs suites that others wrote, and prints a table.
func TestForeignSuitesPassOnThePast(t *testing.T) {
	if !*suites {
		t.Skip("a run of minutes, not a test: make test-foreign")
	}
	all, err := readExpected("testdata/expected.tsv", project)
	require.NoError(t, err)
	r := &report{expected: all}
	w := newWorld(t)
	_, err = w.plane.StartControllerManager(t.Context())
	require.NoError(t, err)
	w.runCmd(t, r)
	ran := []string{"cmd"}
	if *e2e != "" {
		w.runE2E(t, r, *e2e)
		ran = append(ran, "e2e")
	}
	if *only == "" {
		r.close(ran...)
	}
	require.NoError(t, r.print(os.Stdout))
	r.requireGood(t)
}

// progress says how a long run goes on.
func progress(format string, arguments ...any) { fmt.Fprintf(os.Stdout, format+"\n", arguments...) }
