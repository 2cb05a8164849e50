package tasks_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/internal/scene/record"
)

// A scene is the record of the shop, and the instants that the tasks name.
type scene struct {
	database  *pgtest.Database
	landmarks *strings.Replacer
}

func TestTheTasksOfATrialAreAnsweredOnTheScene(t *testing.T) {
	database := pgtest.New(t, pgtest.EmptyRecord)
	require.NoError(t, record.Into(t.Context(), database.URL()))
	s := &scene{database: database, landmarks: findLandmarks(t, database, database.Connect(t))}
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
		answer = s.replay(t, task)
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

// replay gives the standard output of a command, or, if it has none, its standard error.
func (s *scene) replay(t *testing.T, task task) string {
	t.Helper()
	var out, notes bytes.Buffer
	cmd := exec.CommandContext(t.Context(), recordertest.Program("replay"), task.arguments(s.landmarks)...)
	cmd.Env = append(os.Environ(), "REPLAY_DATABASE="+s.database.URL(), "TZ=Europe/Berlin")
	cmd.Stdout, cmd.Stderr = &out, &notes
	if err := cmd.Run(); cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	require.Equal(t, task.code, cmd.ProcessState.ExitCode(), notes.String())
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
