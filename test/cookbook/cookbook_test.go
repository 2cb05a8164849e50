package cookbook_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

func TestTheCookbookAnswersItsQuestions(t *testing.T) {
	p := readPage(t)
	require.GreaterOrEqual(t, len(p.questions), 24)
	s := play(t)

	settings := map[string]string{"cluster": clusterName}
	for name, moment := range s.moments {
		settings[name] = moment.Format("2006-01-02 15:04:05.000+00")
	}
	require.Equal(t, names(settings), names(p.settings), `the page sets what its queries need: \set name 'value'`)
	require.Equal(t, names(s.moments), names(p.shell), "the page sets what its commands need: name=value")
	outputs := s.ask(t, settings, p.questions)
	s.expect(t, p, outputs)
	t.Run("every query that reads deltas is bounded", func(t *testing.T) { s.prunes(t, settings, p) })
	t.Run("the page names the command that answers", func(t *testing.T) { s.answerWithReplay(t, p) })
	t.Run("the commands of the cheat sheet", s.cheatSheet)
	if *update {
		if !t.Failed() {
			require.NoError(t, os.WriteFile(pagePath, []byte(p.with(settings, outputs)), 0o644))
		}
		return
	}
	for i, q := range p.questions {
		t.Run(q.title, func(t *testing.T) {
			require.Equal(t, normalised(q.output), normalised(outputs[i]), "go test ./test/cookbook -args -update writes the page again")
		})
	}
}

// answer is one answer as a table of trimmed cells.
func answer(t *testing.T, p page, outputs []string, title string) [][]string {
	t.Helper()
	i := slices.IndexFunc(p.questions, func(q question) bool { return q.title == title })
	require.GreaterOrEqual(t, i, 0, "the page asks: %s", title)
	var rows [][]string
	lines := strings.Split(strings.TrimSpace(outputs[i]), "\n")
	for _, line := range lines[2 : len(lines)-1] {
		var cells []string
		for cell := range strings.SplitSeq(line, "|") {
			cells = append(cells, strings.TrimSpace(cell))
		}
		rows = append(rows, cells)
	}
	return rows
}

// lines joins the wanted cells of each row, and drops the others, such as times.
func lines(rows [][]string, columns ...int) []string {
	var texts []string
	for _, row := range rows {
		var cells []string
		for _, column := range columns {
			cells = append(cells, row[column])
		}
		texts = append(texts, strings.Join(cells, " "))
	}
	return texts
}

var dayOf = regexp.MustCompile(`deltas_p(\d{8})`)

// No question looks further back or ahead of the story's moments than lookBack and lookAhead.
const (
	lookBack  = 5 * time.Minute
	lookAhead = 30 * time.Minute
)

// prunes checks each plan against a record of many days: it may read only those of the period. A query without days, or by the
// key of lives, has no such plan.
func (w *world) prunes(t *testing.T, settings map[string]string, p page) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), w.database.URL())
	require.NoError(t, err)
	defer func() { _ = conn.Close(t.Context()) }()
	_, err = conn.Exec(t.Context(), `SELECT kuberewind.ensure_day(current_date - n) FROM generate_series(1, 30) n`)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), `SET timezone = 'UTC'; SET enable_partition_pruning = on`)
	require.NoError(t, err)
	first, last := w.moments["from"].Add(-lookBack).Format("20060102"), w.moments["to"].Add(lookAhead).Format("20060102")
	for _, q := range p.questions {
		if !strings.Contains(q.sql, "kuberewind.deltas") && !strings.Contains(q.sql, "kuberewind.changes") {
			continue
		}
		t.Run(q.title, func(t *testing.T) {
			sql := q.sql
			for name, setting := range settings {
				sql = strings.ReplaceAll(sql, ":'"+name+"'", "'"+setting+"'")
			}
			rows, err := conn.Query(t.Context(), "EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) "+sql)
			require.NoError(t, err)
			plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
			require.NoError(t, err)
			for _, line := range plan {
				for _, day := range dayOf.FindAllStringSubmatch(line, -1) {
					if day[1] < first || day[1] > last {
						require.Contains(t, line, "never executed", strings.Join(plan, "\n"))
					}
				}
			}
		})
	}
}
