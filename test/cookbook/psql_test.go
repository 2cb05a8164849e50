package cookbook_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/embedded"
)

// mark stands between the outputs of two queries; psql echoes it.
const mark = "-*- next -*-"

// ask runs the queries with psql in one transaction, after the settings, as a reader pastes them. The login is a member of
// kuberewind_auditor and nothing else.
func (w *world) ask(t *testing.T, settings map[string]string, questions []question) []string {
	t.Helper()
	var script strings.Builder
	script.WriteString("\\pset pager off\n\\set ON_ERROR_STOP on\n")
	for name, setting := range settings {
		script.WriteString(`\set ` + name + ` '` + setting + "'\n")
	}
	script.WriteString("SET timezone = 'UTC';\nSET jit = off;\nBEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;\n")
	for _, q := range questions {
		script.WriteString("\\echo " + mark + "\n" + q.sql)
	}
	script.WriteString("COMMIT;\n")
	cmd := exec.CommandContext(t.Context(), psql(t, w), "--no-psqlrc", "--quiet", "--dbname", w.database.Login(t, "kuberewind_auditor"))
	cmd.Stdin = strings.NewReader(script.String())
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	outputs := strings.Split(string(out), mark+"\n")[1:]
	if err != nil {
		at := "before the first query"
		if len(outputs) > 0 {
			at = questions[len(outputs)-1].title
		}
		t.Fatalf("psql: %s: %v\n%s", at, err, errs.String())
	}
	require.Empty(t, errs.String(), "no answer comes with a warning")
	require.Len(t, outputs, len(questions))
	for i := range outputs {
		outputs[i] = strings.TrimRight(outputs[i], "\n") + "\n"
	}
	return outputs
}

// psql is the program beside the server's binaries, or else the one on PATH.
func psql(t *testing.T, w *world) string {
	t.Helper()
	dir := os.Getenv(embedded.BinDirEnv)
	if dir == "" {
		dir = value[string](w, `SELECT coalesce((SELECT setting FROM pg_config WHERE name = 'BINDIR'), '')`)
	}
	path := filepath.Join(dir, "psql")
	if _, err := os.Stat(path); err == nil {
		return path
	} else if !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	path, err := exec.LookPath("psql")
	require.NoError(t, err, "install PostgreSQL's client: the cookbook is proved with psql")
	return path
}
