package tasks_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/controlplane/binaries"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

// A scene is the record of the shop, and the instants that the tasks name.
type scene struct {
	database  *pgtest.Database
	landmarks *strings.Replacer
	plugins   string // folder in which replay has the name of a plugin
}

func TestTheTasksOfATrialAreAnsweredOnTheScene(t *testing.T) {
	database := pgtest.New(t, scenetest.Record)
	s := &scene{database: database, landmarks: findLandmarks(t, database, database.Connect(t)), plugins: t.TempDir()}
	require.NoError(t, os.Symlink(recordertest.Program("replay"), filepath.Join(s.plugins, "kubectl-kuberewind")))
	t.Log(table(shop))
	for _, task := range shop {
		t.Run(task.number+" "+task.asks, func(t *testing.T) {
			t.Parallel()
			s.requireAnswer(t, task)
		})
	}
}

// table shows how each task is answered.
func table(tasks []task) string {
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 8, 2, ' ', 0)
	for _, task := range tasks {
		fmt.Fprintf(columns, "\n%s\t%s\t%s", task.number, task.asks, task.how())
	}
	_ = columns.Flush() // a Builder takes everything
	return out.String()
}

func (s *scene) requireAnswer(t *testing.T, task task) {
	t.Helper()
	var answer string
	switch {
	case task.replay != "":
		answer = s.run(t, task.code, recordertest.Program("replay"), arguments(task.replay, s.landmarks))
	case task.kubectl != "":
		answer = s.run(t, task.code, kubectl(t), arguments(task.kubectl, s.landmarks))
	case task.sql != "":
		answer = s.query(t, task.sql)
	default:
		t.Skip(task.elsewhere)
	}
	requireInOrder(t, answer, task.want)
	for _, unwanted := range task.never {
		require.NotContains(t, answer, unwanted)
	}
	if task.most > 0 {
		require.LessOrEqual(t, strings.Count(strings.TrimSpace(answer), "\n")+1, task.most, answer)
	}
}

// kubectl is that of the control plane. It finds replay as a plugin.
func kubectl(t *testing.T) string {
	t.Helper()
	dir, err := binaries.Find(binaries.Kubectl)
	require.NoError(t, err)
	return filepath.Join(dir, binaries.Kubectl)
}

// run gives the standard output of a program, or, if it has none, its standard error.
func (s *scene) run(t *testing.T, code int, program string, args []string) string {
	t.Helper()
	var out, notes bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "REPLAY_DATABASE="+s.database.URL(), "TZ=Europe/Berlin", "PATH="+s.plugins+":"+os.Getenv("PATH"))
	cmd.Stdout, cmd.Stderr = &out, &notes
	if err := cmd.Run(); cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	require.Equal(t, code, cmd.ProcessState.ExitCode(), notes.String())
	if out.Len() == 0 {
		return notes.String()
	}
	return out.String()
}

// query gives the rows of a column.
func (s *scene) query(t *testing.T, sql string) string {
	t.Helper()
	rows, err := s.database.Connect(t).Query(t.Context(), sql)
	require.NoError(t, err)
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return strings.Join(found, "\n")
}

// requireInOrder finds each part after the part before.
func requireInOrder(t *testing.T, answer string, parts []string) {
	t.Helper()
	rest := strings.Join(strings.Fields(answer), " ")
	for _, part := range parts {
		_, after, found := strings.Cut(rest, part)
		require.True(t, found, "%q is not in the answer, or not after what comes before it:\n%s", part, answer)
		rest = after
	}
}
