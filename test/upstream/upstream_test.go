package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEachDocumentedDifferenceIsDocumented(t *testing.T) {
	known, err := readExpected(filepath.Join("testdata", "expected.tsv"))
	require.NoError(t, err)
	for _, s := range suites {
		require.NotEmpty(t, known[s.name])
	}
}

func TestADifferenceThatNoDocumentSaysIsAnError(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "test", "upstream", "testdata")
	require.NoError(t, os.MkdirAll(folder, 0o700))
	document := filepath.Join(folder, "..", "..", "..", "doc.go")
	require.NoError(t, os.WriteFile(document, []byte("// A queue gives\n//     one delta.\n"), 0o600))
	file := filepath.Join(folder, "expected.tsv")
	write := func(sentence string) {
		require.NoError(t, os.WriteFile(file, []byte("# a comment\nfifo\tTestA\tplain\tdoc.go\t"+sentence+"\n"), 0o600))
	}
	write("A queue gives one delta.")
	known, err := readExpected(file)
	require.NoError(t, err)
	require.Equal(t, difference{how: plain, document: "doc.go", sentence: "A queue gives one delta."}, known["fifo"]["TestA"])

	write("A queue gives two deltas.")
	_, err = readExpected(file)
	require.ErrorContains(t, err, `TestA: doc.go does not say "A queue gives two deltas."`)
}

func TestATestIsJudgedByWhatItSaid(t *testing.T) {
	exit := errors.New("exit status 1")
	for name, test := range map[string]struct {
		said   string
		err    error
		killed bool
		want   outcome
	}{
		"a pass":                              {"--- PASS: TestA (0.00s)\nPASS", nil, false, passed},
		"a failure":                           {"--- FAIL: TestA (0.00s)\nFAIL", exit, false, failed},
		"a skip":                              {"--- SKIP: TestA (0.00s)\nPASS", nil, false, skipped},
		"a test of a longer name":             {"--- FAIL: TestAB (0.00s)\nok", nil, false, passed},
		"a panic":                             {"panic: boom\n--- FAIL: TestA (0.00s)", exit, false, panicked},
		"a fatal error":                       {"fatal error: all goroutines are asleep", exit, false, panicked},
		"its own timeout":                     {"panic: test timed out after 12s", exit, false, hung},
		"no end":                              {"", exit, true, hung},
		"a race, in a test that fails":        {"WARNING: DATA RACE\n--- FAIL: TestA (0.00s)", exit, false, raced},
		"a race, in a test that hangs":        {"WARNING: DATA RACE\npanic: test timed out after 12s", exit, false, raced},
		"a race of ours with package testing": {"WARNING: DATA RACE\nRead at 0x1 by goroutine 22:\n  x/reflector.F()\n\nPrevious write at 0x1 by goroutine 21:\n  testing.tRunner.func1()\n==================\npanic: boom", exit, false, raced},
		"a failure after the test's end":      {"WARNING: DATA RACE\nRead at 0x1 by goroutine 22:\n  testing.(*common).destination()\n  x/reflector.F()\n\nPrevious write at 0x1 by goroutine 21:\n  testing.tRunner.func1()\n==================\npanic: Log in goroutine after TestA has completed", exit, false, panicked},
		"a race after such a failure":         {"WARNING: DATA RACE\nRead at 0x1 by goroutine 22:\n  testing.(*common).destination()\n==================\nWARNING: DATA RACE\nWrite at 0x1 by goroutine 22:\n  x/reflector.F()\n", exit, false, raced},
		"a leak":                              {"--- PASS: TestA (0.00s)\nPASS\ngoleak: found unexpected goroutines", exit, false, leaked},
		"nothing, and an exit code":           {"", exit, false, failed},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, judge("TestA", "\n"+test.said, test.err, test.killed))
		})
	}
}

func TestATestThatDoesNotEndAsExpectedIsTriedAgain(t *testing.T) {
	known := difference{how: looped, document: "doc.go", sentence: "so it is"}
	const failsWithout = `if [ -z "$UPSTREAM_LOOP" ]; then echo "--- FAIL: TestA (0s)"; exit 1; fi`
	for name, test := range map[string]struct {
		script      string
		want        outcome
		unexplained bool
		runs        string
	}{
		"it differs as documented":             {failsWithout, failed, false, "xx"},
		"its setting helps at the second try":  {failsWithout + `; [ $(wc -c <runs) = 4 ] || { echo "--- FAIL: TestA (0s)"; exit 1; }`, failed, false, "xxxx"},
		"its setting never helps":              {`echo "--- FAIL: TestA (0s)"; exit 1`, failed, true, "xxxxxxxx"},
		"a data race is not tried again":       {`echo "WARNING: DATA RACE"; exit 1`, raced, false, "x"},
		"a leak is not tried again":            {`echo "found unexpected goroutines"; exit 1`, leaked, false, "x"},
		"a leak of the double is tried again":  {`echo "found unexpected goroutines, ` + stuckDouble + `"; exit 1`, leaked, false, "xxxx"},
		"a pass is not tried again":            {`echo "--- PASS: TestA (0s)"`, passed, false, "x"},
		"a race under the setting is not lost": {failsWithout + `; echo "WARNING: DATA RACE"; exit 1`, raced, true, "xx"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			binary := filepath.Join(folder, "cache.test")
			require.NoError(t, os.WriteFile(binary, []byte("#!/bin/sh\nprintf x >>runs\n"+test.script+"\n"), 0o700)) //nolint:gosec // it is run
			got := suite{name: "cache", patience: time.Minute}.test(t.Context(), binary, "TestA", known)
			require.Equal(t, test.want, got.outcome)
			require.Equal(t, test.unexplained, got.unexplained)
			runs, err := os.ReadFile(filepath.Join(folder, "runs"))
			require.NoError(t, err)
			require.Equal(t, test.runs, string(runs))
		})
	}
}

func TestOnlyWhatIsDocumentedIsNoBug(t *testing.T) {
	known := difference{how: plain, document: "doc.go", sentence: "so it is"}
	var all report
	all.add("fifo", "TestA", try{outcome: passed}, difference{}, false)
	all.add("fifo", "TestB", try{outcome: failed}, known, true)
	all.add("fifo", "TestC", try{outcome: passed}, known, true)
	all.add("fifo", "TestD", try{outcome: raced, log: "d.log", said: "one\ntwo\n"}, known, true)
	all.add("fifo", "TestE", try{outcome: failed, log: "e.log"}, difference{}, false)
	var out strings.Builder
	require.NoError(t, all.print(&out))
	require.Equal(t, 2, all.bugs)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, "upstream: 5 run, 2 pass, 1 documented differences, 2 bugs", lines[len(lines)-1])
	require.Contains(t, out.String(), "TestD\tRACE\tBUG, all of it in d.log (-keep), its end:\n    one\n    two\n")
}

func TestADroppedTestIsCutOutWithItsImports(t *testing.T) {
	f := &fork{drop: map[string]bool{"Gone": true, "Kept.method": true, "goneToo": true}}
	got, err := f.rewrite("a.go", []byte(`package a

import (
	"fmt"
	"os"
	"k8s.io/klog/v2"
)

// Gone is documented.
type Gone struct{}

var _ fmt.Stringer = &Gone{}

func (g *Gone) String() string { return os.Args[0] }

type Kept struct{}

// method goes.
func (k *Kept) method() { fmt.Println() }

const (
	goneToo = 1
	stays   = 2
)

func (k *Kept) stays() { klog.Info("here") }
`))
	require.NoError(t, err)
	text := strings.Join(strings.Fields(string(got)), " ")
	require.Equal(t, `package a import ( "k8s.io/klog/v2" ) type Kept struct{} const ( stays = 2 ) func (k *Kept) stays() { klog.Info("here") }`, text)
}

func TestAnEditThatFindsNothingIsAnError(t *testing.T) {
	text, err := edit("a.go", "one two one", []string{"one", "three"})
	require.NoError(t, err)
	require.Equal(t, "three two three", text)
	_, err = edit("a.go", "two", []string{"one", "three"})
	require.EqualError(t, err, `client-go has changed: a.go does not contain "one"`)
}
