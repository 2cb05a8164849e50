package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestMain lets the test binary run as the program.
func TestMain(m *testing.M) {
	if os.Getenv("TEST_TIMES_IS_PROGRAM") != "" {
		main()
	}
	os.Exit(m.Run())
}

// program returns a command that runs this program as a process.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), "TEST_TIMES_IS_PROGRAM=1")
	return cmd
}

const lines = `made by make
{"Action":"start","Package":"github.com/kuberewind/kuberewind/patch"}
{"Action":"pass","Package":"github.com/kuberewind/kuberewind/patch","Test":"TestShort","Elapsed":0.5}
{"Action":"pass","Package":"github.com/kuberewind/kuberewind/patch","Test":"TestLong/part","Elapsed":2}
{"Action":"pass","Package":"github.com/kuberewind/kuberewind/patch","Test":"TestLong","Elapsed":2}
{"Action":"output","Package":"github.com/kuberewind/kuberewind/patch","Output":"test-times: 7.500000 CPU seconds, 1.250000 of daemons\n"}
{"Action":"pass","Package":"github.com/kuberewind/kuberewind/patch","Elapsed":3}
{"Action":"pass","Package":"github.com/kuberewind/kuberewind/kube","Elapsed":2.5}
`

const total = `{"Action":"test-times","Elapsed":10,"CPU":20}` + "\n"

func table(t *testing.T, text string) string {
	t.Helper()
	r, err := read(bytes.NewBufferString(text))
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, r.print(&out))
	return out.String()
}

func TestTheTableShowsPackagesAndTestsLongestFirst(t *testing.T) {
	require.Equal(t, `package         test       wall s  CPU s  PostgreSQL CPU s
patch                      3.0     7.5    1.2
kube                       2.5     -      -
patch           TestLong   2.0     -      -
patch           TestShort  0.5     -      -
all packages               -       7.5    1.2
build and link             -       11.2   -
the whole run              10.0    18.8   1.2
`, table(t, lines+total))
}

func TestAPlainGoTestFileGivesATableWithoutTheWholeRun(t *testing.T) {
	text := table(t, lines)
	require.Contains(t, text, "TestLong")
	require.NotContains(t, text, "the whole run")
}

func TestAFileWithoutResultsFails(t *testing.T) {
	_, err := read(bytes.NewBufferString("ok patch 0.1s\n"))
	require.ErrorContains(t, err, "no results of go test -json")
}

func TestThePageKeepsTheTextOutsideTheMarkers(t *testing.T) {
	dir := t.TempDir()
	results, page := filepath.Join(dir, "results"), filepath.Join(dir, "page.md")
	require.NoError(t, os.WriteFile(results, []byte(lines+total), 0o600))
	require.NoError(t, os.WriteFile(page, []byte("before\n"+pageBegin+"old\n"+pageEnd+"after\n"), 0o600))
	require.NoError(t, writePage(results, page))
	require.NoError(t, writePage(results, page), "a second time")
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	require.Contains(t, string(text), "before\n"+pageBegin+"\n| package |")
	require.Contains(t, string(text), "| patch | TestLong | 2.0 | - | - |")
	require.Contains(t, string(text), pageEnd+"after\n")
	require.NotContains(t, string(text), "old")
	require.Error(t, writePage(results, results), "a page without markers")
}

func TestARunIncludesTheTimeOfItsTestBinaries(t *testing.T) {
	file := filepath.Join(t.TempDir(), "new", "results")
	self, err := os.Executable()
	require.NoError(t, err)
	// The shell replaces the go command. It prints events around the output that a test binary prints through exec.
	script := `line=$("$1" exec /bin/sh -c "$2"); code=$?
		printf '{"Action":"output","Package":"p","Output":"%s\\n"}\n{"Action":"pass","Package":"p","Elapsed":1}\n' "$line"; exit $code`
	burn := `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; exit 3`
	out, err := program(t, "run", file, "/bin/sh", "-c", script, "sh", self, burn).CombinedOutput()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, "%s", out)
	require.Equal(t, 3, exit.ExitCode(), "the code of the test binary: %s", out)
	written, err := os.ReadFile(file)
	require.NoError(t, err)
	r, err := read(bytes.NewReader(written))
	require.NoError(t, err)
	require.Len(t, r.rows, 1)
	require.Greater(t, r.rows[0].cpu, 0.01)
	require.GreaterOrEqual(t, r.total.CPU, r.rows[0].cpu, "the run has what its packages have")
	require.WithinDuration(t, time.Now(), *r.total.When, time.Minute)
}

func TestTheOutputOfAFailedTestIsShown(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, follow(bytes.NewBufferString(`{"Action":"output","Package":"p","Test":"TestA","Output":"good\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"bad\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p","Test":"TestB"}
{"Action":"build-output","ImportPath":"q","Output":"does not compile\n"}
{"Action":"fail","Package":"p","Elapsed":2}
plain text
`), &out))
	require.Equal(t, "bad\ndoes not compile\nfail p 2.0 s\nplain text\n", out.String())
}
