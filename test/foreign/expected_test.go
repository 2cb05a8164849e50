package foreign_test

import (
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"
)

// project is the root of the repository.
const project = "../.."

// A verdict is how a test of a suite ended, or why it was not run.
type verdict string

const (
	passed     verdict = "passed"
	failed     verdict = "FAILED"
	differs    verdict = "differs as documented"
	inapplying verdict = "not applicable"
	unneeded   verdict = "PASSED, though it is expected to differ"
	unknown    verdict = "NOT THERE, though it is expected"
)

// good reports whether a verdict is one that a run may have.
func (v verdict) good() bool { return v == passed || v == differs || v == inapplying }

// An expectation is what a test does other than to pass.
type expectation struct {
	verdict  verdict // differs or inapplying
	document string  // a file of the project, and a sentence that stands there
	sentence string
	says     string // stands in the last lines of what the test says
	why      string
	used     bool
}

// expected are the expectations, by suite and test.
type expected map[string]*expectation

// readExpected reads lines of suite, test, verdict, document, sentence, what the test says, and why; "-" for what is not there.
func readExpected(file, root string) (expected, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	all := expected{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, "\t")
		if len(fields) != 7 {
			return nil, fmt.Errorf("%s: a line of %d fields, not 7: %s", file, len(fields), line)
		}
		e := &expectation{verdict: verdict(fields[2]), document: fields[3], sentence: fields[4], says: fields[5], why: fields[6]}
		if err := e.proved(root); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, fields[1], err)
		}
		all[fields[0]+" "+fields[1]] = e
	}
	return all, nil
}

// proved looks for the sentence.
func (e *expectation) proved(root string) error {
	switch {
	case e.why == "-" || e.why == "":
		return fmt.Errorf("it does not say why")
	case e.verdict == inapplying:
		return nil
	case e.verdict != differs:
		return fmt.Errorf("%q is no verdict: write %q or %q", e.verdict, differs, inapplying)
	}
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(e.document)))
	if err != nil {
		return err
	}
	if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), e.sentence) {
		return fmt.Errorf("%s does not say %q", e.document, e.sentence)
	}
	return nil
}

// A result is one line of the table.
type result struct {
	suite, test string
	verdict
	why string
}

// A report judges the tests of suites.
type report struct {
	expected expected
	results  []result
}

// skips reports whether a test is not to be run, and notes that.
func (r *report) skips(suite, test string) bool {
	e := r.expected[suite+" "+test]
	if e == nil || e.verdict != inapplying {
		return false
	}
	e.used = true
	r.results = append(r.results, result{suite, test, inapplying, e.why})
	return true
}

// add judges a test that was run, by whether it passed and what it said.
func (r *report) add(suite, test string, pass bool, said string) verdict {
	v, why := passed, ""
	e := r.expected[suite+" "+test]
	if e != nil {
		e.used, why = true, e.why
	}
	switch {
	case pass && e != nil:
		v = unneeded
	case !pass && e != nil && strings.Contains(last(said, saidLines), e.says):
		v = differs
	case !pass:
		v, why = failed, "its end: "+last(said, shownLines)
	}
	r.results = append(r.results, result{suite, test, v, why})
	return v
}

// saidLines are in how many of the last lines a test says in which way it differs, and shownLines how many of a failure are shown.
const saidLines, shownLines = 12, 4

// last gives the last lines of a text that are not empty.
func last(said string, n int) string {
	lines := slices.DeleteFunc(strings.Split(said, "\n"), func(line string) bool { return strings.TrimSpace(line) == "" })
	return strings.Join(lines[max(0, len(lines)-n):], " | ")
}

// close adds the expectations that no test had.
func (r *report) close(suites ...string) {
	for _, name := range slices.Sorted(maps.Keys(r.expected)) {
		suite, test, _ := strings.Cut(name, " ")
		if !r.expected[name].used && slices.Contains(suites, suite) {
			r.results = append(r.results, result{suite, test, unknown, r.expected[name].why})
		}
	}
}

// print writes the table, and the sums.
func (r *report) print(to io.Writer) error {
	table := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	sums := map[string]map[verdict]int{}
	for _, each := range r.results {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", each.suite, each.test, each.verdict, each.why)
		if sums[each.suite] == nil {
			sums[each.suite] = map[verdict]int{}
		}
		sums[each.suite][each.verdict]++
	}
	for _, suite := range slices.Sorted(maps.Keys(sums)) {
		s := sums[suite]
		bad := s[failed] + s[unneeded] + s[unknown]
		fmt.Fprintf(table, "%s: %d run, %d passed, %d differ as documented, %d not applicable, %d bad\n", suite, s[passed]+s[differs]+s[failed]+s[unneeded], s[passed], s[differs], s[inapplying], bad)
	}
	return table.Flush()
}

// requireGood fails for each line that a run may not have.
func (r *report) requireGood(t *testing.T) {
	t.Helper()
	for _, each := range r.results {
		if !each.good() {
			t.Errorf("%s %s: %s: %s", each.suite, each.test, each.verdict, each.why)
		}
	}
}

func TestTheExpectedDifferencesAreDocumented(t *testing.T) {
	all, err := readExpected("testdata/expected.tsv", project)
	require.NoError(t, err)
	require.NotEmpty(t, all)
}

func TestOnlyADifferenceThatIsDocumentedIsExpected(t *testing.T) {
	root := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(root, "page.md"), []byte("Nothing\nis compressed."), 0o600))
	file := filepath.Join(root, "expected.tsv")
	read := func(line string) (expected, error) {
		require.NoError(t, os.WriteFile(file, []byte("# a comment\n"+line+"\n"), 0o600))
		return readExpected(file, root)
	}
	all, err := read("cmd\trun_a\tdiffers as documented\tpage.md\tNothing is compressed.\thas not\tthe server compresses nothing")
	require.NoError(t, err)
	require.Equal(t, differs, all["cmd run_a"].verdict)
	for line, says := range map[string]string{
		"cmd\trun_a\tdiffers as documented\tpage.md\tAll is.\t-\twhy": `page.md does not say "All is."`,
		"cmd\trun_a\tnot applicable\t-\t-\t-\t-":                      "does not say why",
		"cmd\trun_a\tfails\t-\t-\t-\twhy":                             "no verdict",
		"cmd\trun_a":                                                  "a line of 2 fields",
	} {
		_, err = read(line)
		require.ErrorContains(t, err, says)
	}
}

func TestATestIsJudgedByWhatIsExpectedOfIt(t *testing.T) {
	r := report{expected: expected{
		"cmd run_differs": {verdict: differs, says: "has not:Vary"},
		"cmd run_mended":  {verdict: differs, says: "has not:Vary"},
		"cmd run_other":   {verdict: differs, says: "has not:Vary"},
		"cmd run_writes":  {verdict: inapplying, why: "it writes"},
		"cmd run_gone":    {verdict: inapplying, why: "it writes"},
		"e2e gone":        {verdict: inapplying, why: "this suite is not run"},
	}}
	require.Equal(t, passed, r.add("cmd", "run_passes", true, ""))
	require.Equal(t, failed, r.add("cmd", "run_fails", false, "the end"))
	require.Equal(t, differs, r.add("cmd", "run_differs", false, "has not:Vary: Accept"))
	require.Equal(t, failed, r.add("cmd", "run_other", false, "has not:Vary"+strings.Repeat("\nand then much else", saidLines)))
	require.Equal(t, unneeded, r.add("cmd", "run_mended", true, ""))
	require.True(t, r.skips("cmd", "run_writes"))
	require.False(t, r.skips("cmd", "run_passes"))
	r.close("cmd")
	require.Equal(t, result{"cmd", "run_gone", unknown, "it writes"}, r.results[len(r.results)-1])
	var out strings.Builder
	require.NoError(t, r.print(&out))
	require.Contains(t, out.String(), "cmd: 5 run, 1 passed, 1 differ as documented, 1 not applicable, 4 bad\n")
}
