package foreign_test

import (
	"cmp"
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// focus are the specs of the API machinery that read what the past serves, and need no Pod to run.
const focus = `Watchers|WatchList|API chunking|Table transformation|Discovery|CustomResourceDefinition Watch|AggregatedDiscovery|OpenAPIV3|server version|Server request timeout`

// specs are ginkgo's report: one element each, also for specs that were left out.
type specs struct {
	Suites []struct {
		Cases []struct {
			Name    string `xml:"name,attr"`
			Status  string `xml:"status,attr"`
			Failure *fault `xml:"failure"`
			Error   *fault `xml:"error"`
		} `xml:"testcase"`
	} `xml:"testsuite"`
}

// A fault is why a spec does not pass.
type fault struct {
	Says string `xml:"message,attr"`
}

// labels stand in the name of a spec.
var labels = regexp.MustCompile(`\[[^\]]*\]`)

// leftOut are the specs that do not apply, as a regular expression.
func (r *report) leftOut() string {
	var names []string
	for name, e := range r.expected {
		if spec, isSpec := strings.CutPrefix(name, "e2e "); isSpec && e.verdict == inapplying {
			names = append(names, strings.ReplaceAll(regexp.QuoteMeta(spec), " ", `( \[[^\]]*\])* `)) // with its labels
		}
	}
	return cmp.Or(strings.Join(names, "|"), "^$")
}

// runE2E runs specs of Kubernetes' e2e suite, of a binary that was built.
func (w *world) runE2E(t *testing.T, r *report, binary string) {
	t.Helper()
	junit := filepath.Join(t.TempDir(), "junit.xml")
	arguments := []string{
		"-kubeconfig", w.kubeconfig(t), "-provider=skeleton", "-allowed-not-ready-nodes=-1", "-ginkgo.v", "-ginkgo.no-color", "-ginkgo.junit-report", junit,
		"-delete-namespace-on-failure=true", "-ginkgo.timeout=30m", "-ginkgo.focus", cmp.Or(*only, focus), "-ginkgo.skip", r.leftOut(),
	}
	command := exec.CommandContext(t.Context(), binary, arguments...)
	command.Dir = t.TempDir()
	command.Env = append(os.Environ(), "KUBE_WATCHLIST_INCONSISTENCY_DETECTOR=true") // A streamed list that differs from a list ends the program.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	log, err := os.Create(filepath.Join(cmp.Or(*kept, t.TempDir()), "e2e.log"))
	require.NoError(t, err)
	defer func() { _ = log.Close() }() // the program writes to it, and has ended
	command.Stdout, command.Stderr = log, log
	runErr := command.Run() // whether it failed stands in the report, too
	text, err := os.ReadFile(junit)
	require.NoError(t, err, "%v: -keep keeps what it says", runErr)
	var found specs
	require.NoError(t, xml.Unmarshal(text, &found))
	for _, s := range found.Suites {
		for _, c := range s.Cases {
			name := strings.Join(strings.Fields(labels.ReplaceAllString(c.Name, "")), " ")
			wrong := cmp.Or(c.Failure, c.Error, &fault{})
			pass := c.Failure == nil && c.Error == nil
			if r.skips("e2e", name) || c.Status == "skipped" || pass && !strings.HasPrefix(c.Name, "[It]") {
				continue // it does not apply, was not chosen, or is what is around specs
			}
			progress("e2e %s: %s", name, r.add("e2e", name, pass, wrong.Says))
		}
	}
}
