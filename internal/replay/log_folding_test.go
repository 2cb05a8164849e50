package replay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

// newScene returns the recording of the scene, in its own database.
func newScene(t *testing.T) *book {
	t.Helper()
	b := bookOf(t, pgtest.New(t, scenetest.Record))
	return b
}

// entriesOf counts the deltas of a log in JSON.
func entriesOf(t *testing.T, out string) (n int) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var line struct{ Seq int64 }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		if line.Seq > 0 {
			n++
		}
	}
	return n
}

var (
	moreLine  = regexp.MustCompile(`(?m)^-- (\d+) more: .*; -v shows them$`)
	entryLine = regexp.MustCompile(`(?m)^[ ~]\d\S+  (Added|Updated|Deleted|Sync) `)
)

func TestShownAndFoldedEntriesAddUpToAllDeltas(t *testing.T) {
	b := newScene(t)
	for _, args := range []string{"-A", "-n shop deployments,replicasets,pods", "pods -A --only status", "-A --events --only spec",
		"-n kube-system --ignore metadata.annotations", "-n shop -l app=web", "deployment/web -n shop -v", "-A --index node=node-002 --type Updated"} {
		t.Run(args, func(t *testing.T) {
			filters := strings.Fields(args)
			all := []string{"log", "--since", "seq:1", "-o", "json", "-v"}
			text := []string{"log", "--since", "seq:1", "--utc"}
			var kept []string
			for i := 0; i < len(filters); i++ {
				switch filters[i] {
				case "--only", "--ignore":
					text = append(text, filters[i], filters[i+1])
					i++
				case "--events", "-v":
					text = append(text, filters[i])
				default:
					kept = append(kept, filters[i])
				}
			}
			if !strings.Contains(args, "--only") && !strings.Contains(args, "-v") {
				text = append(text, "--verbose=false")
			}
			got := b.replayed(t, append(text, kept...)...)
			require.Zero(t, got.code, got.err)
			folded := 0
			if m := moreLine.FindStringSubmatch(got.out); m != nil {
				folded, _ = strconv.Atoi(m[1])
			}
			require.Equal(t, entriesOf(t, b.replayed(t, append(all, kept...)...).out), len(entryLine.FindAllString(got.out, -1))+folded)
		})
	}
}

func TestPipesAndJSONFoldNothing(t *testing.T) {
	b := newScene(t)
	text := b.replayed(t, "log", "-A", "--since", "seq:1", "--type", "Added,Updated,Deleted")
	all := entriesOf(t, b.replayed(t, "log", "-A", "--since", "seq:1", "-o", "json", "--type", "Added,Updated,Deleted").out)
	require.NotContains(t, text.out, " more: ")
	require.Len(t, entryLine.FindAllString(text.out, -1), all)
}

func TestTheLogHasTextsForServerChanges(t *testing.T) {
	b := newScene(t)
	out := b.replayed(t, "log", "-A", "--since", "seq:1", "--utc", "-v").out
	for _, want := range []string{
		`(?m)^ \S+  Updated  Pod shop/web-\S+ +-  +bound to node-00\d`,
		`(?m)^ \S+  Updated  Pod shop/web-\S+ +- +\+ deletionTimestamp \d\d:\d\d:\d\d \(grace \d+ s\)$`,
		`(?m)^ \S+  Updated  Pod \S+ +\S+ +evicted`,
		`(?m)^ \S+  Added    ClusterRoleBinding dave-admin +kubectl-create +created: ClusterRole cluster-admin for User dave$`,
		`(?m)^ \S+  Deleted  ClusterRoleBinding dave-admin +- +deleted: ClusterRole cluster-admin for User dave; last proved writer kubectl-create at `,
		`(?m)^ \S+  Updated  Node node-002 +kubectl-taint\? +- spec.taints$`,
	} {
		require.Regexp(t, want, out)
	}
}

// A drain evicts Pods. An eviction is a version that changes only the status.
func TestTheLogShowsAnEviction(t *testing.T) {
	b := newScene(t)
	for _, args := range []string{"log -A --since seq:1 --verbose=false", "log pods -A --since seq:1 --only spec"} {
		got := b.replayed(t, strings.Fields(args)...)
		require.Zero(t, got.code, got.err)
		require.Regexp(t, `(?m)^ \S+  Updated  Pod billing/ledger-\S+ +- +evicted\n [^ ]`, got.out, args)
	}
	var pod string
	require.NoError(t, b.DB.Connect(t).QueryRow(t.Context(), `
		SELECT name FROM kuberewind.changes WHERE namespace = 'shop' AND kind = 'Pod' AND new::text LIKE '%EvictionByEvictionAPI%' ORDER BY seq LIMIT 1`).Scan(&pod))
	for _, args := range []string{"log pod/" + pod, "story deployment/web"} {
		got := b.replayed(t, append(strings.Fields(args), "-n", "shop", "--verbose=false")...)
		require.Zero(t, got.code, got.err)
		require.Contains(t, got.out, "evicted\n", args)
	}
}

func TestADeletionTimeHasTheZoneOfTheLog(t *testing.T) {
	b := newBook(t)
	b.listed("configmaps", "first_list", delta.SourceList, delta.Marker{})
	b.at("12:58")
	b.write(delta.Added, "configmaps", b.object("configmaps", "shop", "settings", settingsUID, "helm", "", `,"data":{}`))
	for _, ends := range []string{"12:58:30", "13:00:00"} {
		metadata := fmt.Sprintf(`"deletionTimestamp":"2026-03-10T%sZ","deletionGracePeriodSeconds":30,`, ends)
		b.write(delta.Updated, "configmaps", b.object("configmaps", "shop", "settings", settingsUID, "helm", metadata, `,"data":{}`))
	}
	// A separate process: other goroutines of this one read time.Local.
	logged := func(args ...string) string {
		cmd := b.program(t, append([]string{"log", "configmap/settings", "-n", "shop"}, args...)...)
		cmd.Env = append(cmd.Env, "KUBECONFIG="+t.TempDir()+"/none", "TZ=Etc/GMT-11") // POSIX counts west of Greenwich
		var errs strings.Builder
		cmd.Stderr = &errs
		out, err := cmd.Output()
		require.NoError(t, err, errs.String())
		return string(out)
	}
	for zone, want := range map[string][]string{
		"--utc":       {`+ deletionTimestamp 12:58:30 (grace 30 s)`, `deletionTimestamp 12:58:30 → 13:00:00 (grace 30 s)`},
		"--utc=false": {`+ deletionTimestamp 23:58:30 (grace 30 s)`, `deletionTimestamp 23:58:30 → 2026-03-11T00:00:00+11:00 (grace 30 s)`},
	} {
		out := logged(zone)
		for _, text := range want {
			require.Contains(t, out, text)
		}
		require.Contains(t, logged("-o", "json", zone), `"new":"2026-03-10T13:00:00Z"`)
	}
}

func TestAPathOfAnElementShowsOnlyRealChanges(t *testing.T) {
	b := newScene(t)
	out := b.replayed(t, "log", "pods", "-A", "--since", "seq:1", "--path", "status.containerStatuses[*].restartCount", "-o", "json").out
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), `{"note"`) {
			require.Contains(t, lines.Text(), `"op":"replace"`, "a first status and a deletion are no restarts")
		}
	}
	out = b.replayed(t, "log", "-A", "--since", "seq:1", "--path", "metadata", "--type", "Updated").out
	require.NotContains(t, out, "metadata.resourceVersion")
	require.NotContains(t, out, "metadata.managedFields")
}

func TestAroundLimitsTheLogToATimeRange(t *testing.T) {
	b := story(t)
	for args, want := range map[string][]int64{
		"-A --around 2026-03-10T12:07:00Z --within 1m":          {8, 9, 10, 11},
		"-A --around seq:10 --within 1m":                        {8, 9, 10, 11},
		"-A --since 2026-03-10T00:00:00Z -l app=web":            {5, 6, 10},
		"-A --since 2026-03-10T00:00:00Z --index uid=" + webUID: {3, 4, 5, 6, 10},
	} {
		t.Run(args, func(t *testing.T) {
			got := b.replayed(t, append([]string{"log", "-o", "json"}, strings.Fields(args)...)...)
			require.Zero(t, got.code, got.err)
			found, _ := seqs(t, got.out)
			require.Equal(t, want, found)
		})
	}
}

func TestOwnedShowsTheTreeOfAnObject(t *testing.T) {
	b := newScene(t)
	out := b.replayed(t, "log", "deployment/web", "-n", "shop", "--owned", "-o", "json").out
	kinds := map[string]int{}
	for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); {
		var e struct{ Kind, Name string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &e))
		require.True(t, e.Kind == "" || e.Name == "web" || strings.HasPrefix(e.Name, "web-"), "%s %s", e.Kind, e.Name)
		kinds[e.Kind]++
	}
	for _, kind := range []string{"Deployment", "ReplicaSet", "Pod"} {
		require.Positive(t, kinds[kind], kind)
	}
	require.Less(t, len(kinds), 5)
	for args, want := range map[string]string{
		"deployments -n shop --owned":          "--owned needs a named object, such as deployment/web",
		"deployment/none -n shop --owned":      `"none" was never recorded in namespace shop`,
		"deployment/web -n shop --owned -f":    "--follow takes one object",
		"deployment/web -n nowhere --owned -v": "was never recorded in namespace nowhere",
	} {
		got := b.replayed(t, append([]string{"log"}, strings.Fields(args)...)...)
		require.Equal(t, 1, got.code, args)
		require.Contains(t, got.err, want, args)
	}
}

// An engineer looks for these four lines after a bad rollout.
func TestABadRolloutFitsOnAScreen(t *testing.T) {
	b := newScene(t)
	first := b.replayed(t, "log", "deployment/web", "-n", "shop", "--path", "spec.template.spec.containers[*].image", "-o", "json")
	images, _ := seqs(t, first.out)
	window := []string{"-n", "shop", "--around", fmt.Sprintf("seq:%d", images[0]), "--within", "45s"}
	got := b.replayed(t, append([]string{"log", "--utc", "--verbose=false"}, window...)...)
	require.Zero(t, got.code, got.err)
	require.LessOrEqual(t, strings.Count(got.out, "\n"), 40)
	for _, sought := range []string{
		`Updated  Deployment shop/web +kubectl/scale +spec.replicas 3 → 5`,
		`Updated  Deployment shop/web +kubectl-set +spec.template.spec.containers\[web\].image \S+:v1 → \S+:v2-broken`,
		`Updated  Deployment shop/web +kubectl-annotate +\+ metadata.annotations.incident="42"`,
		`spec.template.spec.containers\[web\].image \S+:v2-broken → \S+:v1`,
	} {
		require.Regexp(t, sought, got.out)
	}
	folded := moreLine.FindStringSubmatch(got.out)
	require.NotNil(t, folded, got.out)
	more, err := strconv.Atoi(folded[1])
	require.NoError(t, err)
	all := b.replayed(t, append([]string{"log", "-o", "json", "-v"}, window...)...)
	require.Equal(t, entriesOf(t, all.out), len(entryLine.FindAllString(got.out, -1))+more)
}

func TestTheLogSuggestsAWordIfNothingMatches(t *testing.T) {
	b := newScene(t)
	for args, want := range map[string]string{
		"deployment/web -n shop --path spec.replicaz":           `did you mean spec.replicas?`,
		"-n shop --since seq:1 --manager kubectl-sett":          `did you mean kubectl-set?`,
		"-n shpo --since seq:1":                                 `did you mean "shop"?`,
		"-n shop --since seq:1 -l ap=web":                       `Note: no object in this scope has a label "ap"; did you mean "app"?`,
		"-n shop --since seq:1 -l app=wbe,team":                 `Note: no object in this scope has the label app=wbe; did you mean "web"?`,
		"deployments -n shop --since seq:1 --path spec.templat": `did you mean spec.template?`,
	} {
		got := b.replayed(t, append([]string{"log"}, strings.Fields(args)...)...)
		require.Zero(t, got.code, args)
		require.Contains(t, got.err, want, args)
	}
}

func TestTheLogSuggestsALabelIfNothingMatches(t *testing.T) {
	b := newScene(t)
	for _, args := range []string{"get pods -n shop", "diff -n shop --from seq:300", "snapshot -n shop -o -", "log -n shop --since seq:1"} {
		got := b.replayed(t, append(strings.Fields(args), "-l", "ap=web")...)
		require.Contains(t, got.err, `Note: no object in this scope has a label "ap"; did you mean "app"?`, args)
		for _, right := range []string{"app=web", "app", "app!=wbe", "!ap"} {
			got = b.replayed(t, append(strings.Fields(args), "-l", right)...)
			require.NotContains(t, got.err, "no object in this scope", args)
		}
	}
	got := b.replayed(t, "get", "pods", "-n", "shop", "-l", "colour")
	require.Contains(t, got.err, `Note: no object in this scope has a label "colour"`+"\n")
}
