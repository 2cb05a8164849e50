package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		"a pass":                       {"--- PASS: TestA (0.00s)\nPASS", nil, false, passed},
		"a failure":                    {"--- FAIL: TestA (0.00s)\nFAIL", exit, false, failed},
		"a skip":                       {"--- SKIP: TestA (0.00s)\nPASS", nil, false, skipped},
		"a test of a longer name":      {"--- FAIL: TestAB (0.00s)\nok", nil, false, passed},
		"a panic":                      {"panic: boom\n--- FAIL: TestA (0.00s)", exit, false, panicked},
		"a fatal error":                {"fatal error: all goroutines are asleep", exit, false, panicked},
		"its own timeout":              {"panic: test timed out after 12s", exit, false, hung},
		"no end":                       {"", exit, true, hung},
		"a race, in a test that fails": {"WARNING: DATA RACE\n--- FAIL: TestA (0.00s)", exit, false, raced},
		"a race, in a test that hangs": {"WARNING: DATA RACE\npanic: test timed out after 12s", exit, false, raced},
		"a leak":                       {"--- PASS: TestA (0.00s)\nPASS\ngoleak: found unexpected goroutines", exit, false, leaked},
		"nothing, and an exit code":    {"", exit, false, failed},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, judge("TestA", "\n"+test.said, test.err, test.killed))
		})
	}
}

func TestOnlyWhatIsDocumentedIsNoBug(t *testing.T) {
	known := difference{how: plain, document: "doc.go", sentence: "so it is"}
	var all report
	all.add("fifo", "TestA", passed, difference{}, false, "")
	all.add("fifo", "TestB", failed, known, true, "")
	all.add("fifo", "TestC", passed, known, true, "")
	all.add("fifo", "TestD", raced, known, true, "d.log")
	all.add("fifo", "TestE", failed, difference{}, false, "e.log")
	var out strings.Builder
	require.NoError(t, all.print(&out))
	require.Equal(t, 2, all.bugs)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Equal(t, "upstream: 5 run, 2 pass, 1 documented differences, 2 bugs", lines[len(lines)-1])
	require.Contains(t, out.String(), "TestD\tRACE\tBUG, see d.log")
}

func TestWhatIsDroppedIsCutOutWithItsImports(t *testing.T) {
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
