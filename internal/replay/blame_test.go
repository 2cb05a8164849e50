package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// blamed returns the line of a blame that ends with a text.
func blamed(t *testing.T, out, end string) string {
	t.Helper()
	for line := range strings.Lines(out) {
		if strings.HasSuffix(line, end+"\n") {
			return line
		}
	}
	require.Fail(t, "no such line", "%s in\n%s", end, out)
	return ""
}

func TestBlameNamesTheVersionTimeAndManagerOfEachLine(t *testing.T) {
	b := newScene(t)
	undone := imageSeq(t, b, "v1")
	got := b.replayed(t, "blame", "deployment/web", "-n", "shop", "--utc", "--at", fmt.Sprint("seq:", undone+1))
	require.Zero(t, got.code, got.err)
	require.Regexp(t, fmt.Sprintf(`^ *%d  2026-\d\d-\d\d \d\d:\d\d:\d\d  kubectl  +- image: registry.example/web:v1\n$`, undone), blamed(t, got.out, "  - image: registry.example/web:v1"))
	require.Contains(t, blamed(t, got.out, "replicas: 5"), "  kubectl/scale  ")
	require.Contains(t, blamed(t, got.out, "  name: web"), "  kubectl-client-side-apply  ")
	require.NotContains(t, got.out, "managedFields")

	yaml := b.replayed(t, "get", "deployment/web", "-n", "shop", "-o", "yaml", "--at", fmt.Sprint("seq:", undone+1))
	require.Zero(t, yaml.code, yaml.err)
	require.Equal(t, strings.Count(yaml.out, "\n"), strings.Count(got.out, "\n"), "blame has the same lines as get")
	whole := b.replayed(t, "blame", "deployment/web", "-n", "shop", "--show-managed-fields")
	require.Contains(t, whole.out, "managedFields:")
}

func TestBlameMarksLinesFromBeforeTheRecord(t *testing.T) {
	b := newScene(t)
	got := b.replayed(t, "blame", "node", "node-000", "--utc")
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `^ *\d+ [ ~]2026-\S+ \S+  before the record  +kind: Node\n$`, blamed(t, got.out, "kind: Node"))
}

func TestBlameInJSONHasAllFields(t *testing.T) {
	b := newScene(t)
	got := b.replayed(t, "blame", "configmap/settings", "-n", "shop", "-o", "json")
	require.Zero(t, got.code, got.err)
	found := map[string]string{}
	for line := range strings.Lines(got.out) {
		var l struct{ Text, Pointer, Manager string }
		require.NoError(t, json.Unmarshal([]byte(line), &l))
		found[l.Pointer] = l.Text + " by " + l.Manager
	}
	require.Equal(t, "  color: green by kubectl-edit", found["/data/color"])
	require.Equal(t, "kind: ConfigMap by kubectl-client-side-apply", found["/kind"])
}

// endSeq returns the seq of the delta that deleted the Job migrate.
func endSeq(t *testing.T, b *book) (seq int64) {
	t.Helper()
	require.NoError(t, b.DB.Connect(t).QueryRow(t.Context(), `SELECT max(seq) FROM kuberewind.deltas WHERE kind = 'Job' AND name = 'migrate' AND type = 'Deleted'`).Scan(&seq))
	return seq
}

func TestTheErrorOfADeletedObjectNamesTheTimeAndTheCommandForItsLastState(t *testing.T) {
	b := newScene(t)
	seq := endSeq(t, b)
	for _, command := range []string{"get job migrate", "get jobs/migrate", "blame job/migrate"} {
		got := b.replayed(t, append(strings.Fields(command), "-n", "shop")...)
		require.Equal(t, 1, got.code, command)
		require.Empty(t, got.out)
		require.Regexp(t, fmt.Sprintf(`"migrate" (not found: |was )deleted at 2026-\S+Z, by seq:%d; "replay get jobs.batch/migrate -n shop --last" shows its last state\n`, seq), got.err, command)
	}
	got := b.replayed(t, "get", "jobs.batch/migrate", "-n", "shop", "--last", "-o", "yaml")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "reason: BackoffLimitExceeded")
	require.Contains(t, got.err, fmt.Sprintf("by seq:%d: this is its last state\n", seq))
	require.Equal(t, b.replayed(t, "get", "jobs.batch/migrate", "-n", "shop", "-o", "yaml", "--at", fmt.Sprint("seq:", seq-1)).out, got.out)

	before := b.replayed(t, "get", "job", "migrate", "-n", "shop", "--at", "seq:3")
	require.Equal(t, 1, before.code)
	require.NotContains(t, before.err, "deleted at", "the object did not exist yet")
}

func TestLastShowsALivingObjectAtTheInstant(t *testing.T) {
	b := newScene(t)
	require.Equal(t, b.replayed(t, "get", "cm/settings", "-n", "shop", "-o", "yaml").out, b.replayed(t, "get", "cm/settings", "-n", "shop", "-o", "yaml", "--last").out)
	for args, want := range map[string]string{
		"get job/nobody -n shop --last":             `jobs.batch "nobody" was never recorded in namespace shop`,
		"get jobs -n shop --last":                   "--last: name one object: TYPE/NAME",
		"get job/migrate job/x -n shop --last":      "--last: name one object: TYPE/NAME",
		"get job/migrate -A --last":                 "--last shows one object: name its namespace with -n instead of -A",
		"blame job/nobody -n shop":                  `jobs.batch "nobody" did not exist at that instant`,
		"blame jobs -n shop":                        "name one object: TYPE/NAME",
		"blame job/migrate -n shop --at seq:0":      "after seq: a number from 1 is needed",
		"blame job/migrate -n shop --at 2020-01-01": "2020-01-01T00:00:00Z is before the record began",
		"blame job/migrate -n shop -o wide":         `--output "wide": use one of text, json`,
		"blame":                                     "name an object, such as deployment/web",
	} {
		got := b.replayed(t, strings.Fields(args)...)
		require.Equal(t, 1, got.code, args)
		require.Contains(t, got.err, want, args)
	}
}
