package faults_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// mostActions is how many actions of a user may lead to a cause.
const mostActions = 12

// An answer is what find.mjs read on the page.
type answer struct {
	Actions []string `json:"actions"`
	Kind    string   `json:"kind"` // of the object that was changed, "" if the page names no cause
	Object  string   `json:"object"`
	Changes []struct{ Path, New string }
	Unknown string `json:"unknown"` // what the page says instead
	Trouble string `json:"trouble"` // what the list of troubles says of the workload, "" if it is not in it
}

// searched has find.mjs search for each fault, on the page that replay open serves.
func searched(t *testing.T, database *pgtest.Database, trials []trial) (answers []answer) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	require.NoError(t, err, "the page is tested in Chromium: install the package chromium, or set SKIP_WEB=1")
	dir := t.TempDir()
	told := make([]trial, len(trials))
	for i := range trials {
		told[i] = trials[i]
		told[i].Truth = truth{}
	}
	text, err := json.Marshal(told)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "trials.json"), text, 0o600))
	link := opened(t, database.URL())
	at, err := url.Parse(link)
	require.NoError(t, err)
	page := at.Scheme + "://" + at.Host
	node := exec.Command("node", "find.mjs", filepath.Join(dir, "trials.json"), filepath.Join(dir, "answers.json"))
	node.Env = append(os.Environ(), "KUBEREWIND_LINK="+link, "KUBEREWIND_CHROMIUM="+chromium, "KUBEREWIND_PAGE="+page, "KUBEREWIND_CLUSTERS="+page, "KUBEREWIND_HASTY="+page)
	out, err := node.CombinedOutput()
	require.NoError(t, err, "%s", out)
	text, err = os.ReadFile(filepath.Join(dir, "answers.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &answers))
	require.Len(t, answers, len(trials))
	return answers
}

// opened runs replay open until the test ends, and gives the link that it prints.
func opened(t *testing.T, database string) string {
	t.Helper()
	program := exec.Command(recordertest.Program("replay"), "open", "-o", "json", "--database", database)
	program.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir())
	var said bytes.Buffer
	program.Stderr = &said
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	t.Cleanup(func() {
		require.NoError(t, program.Process.Signal(os.Interrupt))
		_ = program.Wait() // It was interrupted.
	})
	var answer struct{ URL string }
	require.NoError(t, json.NewDecoder(out).Decode(&answer), "%s", &said)
	return answer.URL
}

// judge compares an answer with the truth.
func judge(t *testing.T, db *pgx.Conn, of *trial, a *answer) {
	t.Helper()
	what := fmt.Sprintf("%s at %s/%s", of.Truth.Of, of.Namespace, of.Workload)
	found := a.Kind + " " + a.Object
	for _, c := range a.Changes {
		found += fmt.Sprintf(", %s = %s", c.Path, strings.Join(strings.Fields(c.New), " "))
	}
	fmt.Fprintf(os.Stderr, "%-40s %2d actions: %s%s\n", what, len(a.Actions), strings.TrimSpace(found), a.Unknown)
	if len(a.Actions) > mostActions {
		t.Errorf("%s took %d actions: %s", what, len(a.Actions), strings.Join(a.Actions, ", "))
	}
	if of.Truth.Lost {
		if a.Kind != "" || !strings.Contains(a.Unknown, "may be missing") {
			t.Errorf("%s was not recorded, and the page names a cause: %s", what, found)
		}
		if strings.Contains(a.Trouble, "change before it") {
			t.Errorf("%s was not recorded, and the list of troubles names a change: %s", what, a.Trouble)
		}
		return
	}
	kind, object, value := recorded(t, db, of)
	if a.Kind != kind || a.Object != object {
		t.Errorf("%s: %s %s was found, and it was %s %s (actions: %s)", what, a.Kind, a.Object, kind, object, strings.Join(a.Actions, ", "))
		return
	}
	for _, c := range a.Changes {
		if c.Path == of.Truth.Path && same(c.New, value) {
			return
		}
	}
	t.Errorf("%s: %s has the value %s, and was read as %s", what, of.Truth.Path, value, found)
}

// recorded gives what the record says of a cause.
func recorded(t *testing.T, db *pgx.Conn, of *trial) (kind, object, value string) {
	t.Helper()
	err := db.QueryRow(t.Context(), `SELECT kind, concat_ws('/', nullif(namespace, ''), name), new::text FROM kuberewind.changes
		WHERE uid = $1 AND resource_version = $2 AND path = $3`, of.Truth.UID, of.Truth.ResourceVersion, of.Truth.Path).Scan(&kind, &object, &value)
	require.NoError(t, err, "%s of %s", of.Truth.Path, of.Truth.Of)
	return kind, object, value
}

// same compares a value that the page shows, a text without quotes, with JSON.
func same(shown, recorded string) bool {
	var text string
	if json.Unmarshal([]byte(recorded), &text) == nil {
		return shown == text
	}
	var a, b any
	return json.Unmarshal([]byte(shown), &a) == nil && json.Unmarshal([]byte(recorded), &b) == nil && reflect.DeepEqual(a, b)
}
