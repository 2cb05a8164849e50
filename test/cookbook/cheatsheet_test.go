package cookbook_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sheetRow is a row of the cheat sheet that answers with a command.
var sheetRow = regexp.MustCompile("(?m)^\\| `.*` \\| `((?:replay|recorder) .*)` \\|$")

// exampleTime is an instant of the page for which the test has another, and so is exampleSeq.
var exampleTime = regexp.MustCompile(`--(at|from|until|around) (?:10m|18:45)`)

const exampleSeq = "seq:1234"

var follows = regexp.MustCompile(` -f( |$)`)

// elsewhere are failures of a command as it stands on the page: its instants are not in the record of the test.
var elsewhere = regexp.MustCompile(`is before the record began|is in the future|` + exampleSeq)

// answerLine is a line that is neither empty nor says what was recorded when.
var answerLine = regexp.MustCompile(`(?m)^ *([^-\s]|-[^-])`)

// cheatSheet runs each command of docs/cheatsheet.md: as it stands, and with instants that the record of the story holds.
func (w *world) cheatSheet(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("../../docs/cheatsheet.md")
	require.NoError(t, err)
	rows := sheetRow.FindAllStringSubmatch(string(text), -1)
	require.Greater(t, len(rows), 30)
	sh := w.shell(t)
	sh.env = append(sh.env, "REPLAY_DATABASE="+w.database.URL(), "RECORDER_DATABASE="+w.database.URL()) // verify reads the chain
	then := w.moments["at"].Add(time.Second).Format(time.RFC3339Nano)
	seq := value[int64](w, `SELECT seq FROM kuberewind.deltas WHERE kind = 'ConfigMap' AND name = 'settings' ORDER BY seq LIMIT 1`)
	for _, row := range rows {
		t.Run(row[1], func(t *testing.T) {
			sh := shell{env: sh.env, dir: t.TempDir()}
			if follows.MatchString(row[1]) {
				_, errs, code := sh.run(t, row[1]+" --help") // it would go on; its flags are read all the same
				require.Zero(t, code, errs)
				return
			}
			line := exampleTime.ReplaceAllString(row[1], "--$1 "+then)
			line = strings.ReplaceAll(line, exampleSeq, "seq:"+strconv.FormatInt(seq, 10))
			if line != row[1] {
				_, errs, code := sh.run(t, row[1])
				require.True(t, succeeds(row[1], code) || elsewhere.MatchString(errs), "exit code %d: %s", code, errs)
				sh.dir = t.TempDir()
			}
			answers(t, sh, line)
		})
	}
}

// answers wants the line to print an answer, or to write it into the folder in which it runs.
func answers(t *testing.T, sh shell, line string) {
	t.Helper()
	out, errs, code := sh.run(t, line)
	require.True(t, succeeds(line, code), "%s: exit code %d: %s", line, code, errs)
	written, err := os.ReadDir(sh.dir)
	require.NoError(t, err)
	require.True(t, answerLine.MatchString(out) || len(written) > 0, "%s answers nothing: %s%s", line, out, errs)
}
