package replay

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/replay/diff"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

func TestDiffShowsAddedRemovedAndChangedObjects(t *testing.T) {
	b := story(t)
	got := b.replayed(t, "diff", "-A", "--from", "2026-03-10T12:04:30Z")
	require.Equal(t, 1, got.code, got.err)
	require.Equal(t, `- ConfigMap shop/old
~ ConfigMap shop/settings
    data.mode slow → fast
- Deployment shop/web  (recreated: uid 00000001-0000-4000-8000-000000000000)
+ Deployment shop/web  (recreated: uid 00000002-0000-4000-8000-000000000000)
+ Node worker
+ Secret shop/creds
3 added, 2 removed, 1 changed
`, got.out)
	require.Contains(t, got.err, "the record ends at")

	got = b.replayed(t, "diff", "-A", "--from", "now", "--to", "2026-03-10T12:04:30Z", "-o", "name")
	require.Equal(t, 1, got.code)
	require.Equal(t, "+ configmaps shop/old\n~ configmaps shop/settings\n+ deployments.apps shop/web\n- deployments.apps shop/web\n- nodes worker\n- secrets shop/creds\n", got.out)
	require.Contains(t, got.err, "--from now is later than --to 2026-03-10T12:04:30Z")
}

func TestDiffShowsOnlyTheRequestedObjects(t *testing.T) {
	b := story(t)
	for args, want := range map[string]string{
		"deployments -n shop --from seq:3 --to seq:5":            "~ deployments.apps shop/web\n",
		"deployment/web -n shop --from seq:3 --to seq:5":         "~ deployments.apps shop/web\n",
		"-n shop --from seq:3 --to seq:9":                        "~ deployments.apps shop/web\n+ secrets shop/creds\n",
		"-A -l app=web --from seq:3 --to seq:9":                  "~ deployments.apps shop/web\n",
		"-A --from seq:5 --to seq:6 --all-fields":                "~ deployments.apps shop/web\n",
		"deployments -A --from rv:103 --to rv:104":               "~ deployments.apps shop/web\n",
		"deployments -A --from seq:14 --to 2026-03-10T12:17:00Z": "~ deployments.apps shop/web\n",
		"deployments -A --from seq:14 --to 2026-03-10T12:15:00Z": "",
		"-A --from seq:5 --to seq:6":                             "",
		"configmaps -A --from seq:3 --to seq:9":                  "",
		"-n other --from seq:3 --to now":                         "",
	} {
		t.Run(args, func(t *testing.T) {
			got := b.replayed(t, append([]string{"diff", "-o", "name"}, strings.Fields(args)...)...)
			require.Equal(t, want, got.out, got.err)
			code := 0
			if want != "" {
				code = 1
			}
			require.Equal(t, code, got.code)
		})
	}
	require.Contains(t, b.replayed(t, "diff", "-A", "--from", "seq:5", "--to", "seq:6").err, "1 more objects differ only in bookkeeping fields")
	require.Contains(t, b.replayed(t, "diff", "-A", "--from", "seq:14", "--to", "2026-03-10T12:15:00Z").err, "no recorder ran from")
}

func TestDiffOfManyNamesShowsOnlyTheseNames(t *testing.T) {
	b := story(t)
	args := []string{"diff", "-o", "name", "-n", "shop", "--from", "seq:3", "configmaps", "settings"}
	for n := range resource.MaxNames {
		args = append(args, fmt.Sprintf("none-%d", n))
	}
	got := b.replayed(t, args...)
	require.Equal(t, "~ configmaps shop/settings\n", got.out, "diff does not show other objects of the type")
	require.Equal(t, 2, got.code)
	require.Equal(t, resource.MaxNames, strings.Count(got.err, "did not exist at either instant"), got.err)
}

func TestDiffHasEachOutputForm(t *testing.T) {
	b := story(t)
	got := b.replayed(t, "diff", "-n", "shop", "--from", "seq:3", "--to", "seq:5", "-u")
	require.Equal(t, `--- a/deployments.apps/shop/web	rv 103
+++ b/deployments.apps/shop/web	rv 105
@@ -1,15 +1,17 @@
 apiVersion: apps/v1
 kind: Deployment
 metadata:
+  labels:
+    app: web
   name: web
   namespace: shop
   uid: 00000001-0000-4000-8000-000000000000
 spec:
-  replicas: 3
+  replicas: 5
   template:
     spec:
       containers:
       - image: log:1
         name: log
-      - image: nginx:1.25
+      - image: nginx:1.27
         name: web
`, got.out)
	got = b.replayed(t, "diff", "-A", "--from", "seq:3", "-o", "stat")
	require.Equal(t, `RESOURCE           ADDED   REMOVED   CHANGED
configmaps         0       1         1
deployments.apps   1       1         0
nodes              1       0         0
secrets            1       0         0
total              3       2         1
`, got.out)
	got = b.replayed(t, "diff", "-n", "shop", "--from", "seq:3", "--to", "seq:4", "-o", "json")
	var d diff.Difference
	require.NoError(t, json.Unmarshal([]byte(got.out), &d))
	require.Equal(t, "changed web 103 104", strings.Join([]string{d.Change, d.Name, d.From.ResourceVersion, d.To.ResourceVersion}, " "))
	require.Len(t, d.Changes, 1)
	require.Equal(t, "/spec/replicas", d.Changes[0].Pointer)
}

func TestAFailedDiffHasAnotherExitCodeThanADifference(t *testing.T) {
	b := story(t)
	for args, want := range map[string]string{
		"-A":                                   "name the first instant",
		"-A --from x":                          "--from: not an instant",
		"-A --from seq:1 --to x":               "--to: not an instant",
		"widgets -A --from seq:1":              "the server doesn't have a resource type",
		"-A --from seq:1 --nothing":            "unknown flag: --nothing",
		"-A --from seq:1 --only x":             "use one of spec, status, all",
		"-A --from seq:1 --path a..b":          "a name is missing",
		"-A --from seq:1 --ignore a..b":        "--ignore: path",
		"-A --from seq:1 --index color=red":    `unknown index "color"`,
		"-A --from seq:1 --to 2020-01-01":      "before the record began",
		"configmaps/none -n shop --from seq:1": `configmaps "none" did not exist at either instant`,
		", -A --from seq:1":                    `the server doesn't have a resource type ""`,
		"-A --from seq:1 -o xml":               "use one of text, json, name, unified, stat",
		"-A --from seq:1 -u -o json":           "exclude each other",
		"-A --from seq:1 -l a=b=c":             "",
		"-A --from seq:1 --cluster another":    "another",
	} {
		t.Run(args, func(t *testing.T) {
			got := b.replayed(t, append([]string{"diff"}, strings.Fields(args)...)...)
			require.Equal(t, 2, got.code, got.out)
			require.Contains(t, got.err, want)
			require.Empty(t, got.out)
		})
	}
}

func TestDiffFromBeforeTheRecordBeginsAtItsFirstInstant(t *testing.T) {
	b := story(t)
	got := b.replayed(t, "diff", "-A", "--from", "2020-01-01")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "the record begins at 2026-03-10T12:0")
	require.Equal(t, b.replayed(t, "diff", "-A", "--from", "seq:1").out, got.out)
}

func TestDiffHasTheFiltersOfLog(t *testing.T) {
	b := newScene(t)
	scaled, _ := seqs(t, b.replayed(t, "log", "deployment/web", "-n", "shop", "--path", "spec.replicas", "-o", "json").out)
	diff := func(code int, args ...string) string {
		t.Helper()
		got := b.replayed(t, append([]string{"diff", "--from", fmt.Sprintf("seq:%d", scaled[0]), "-A"}, args...)...)
		require.Equal(t, code, got.code, got.err)
		return got.out
	}
	all := diff(1)
	require.Contains(t, all, "+ Event ")
	require.Contains(t, all, "~ Lease ")
	folded := diff(1, "--verbose=false")
	require.NotRegexp(t, "(?m)^. (Event|Lease|EndpointSlice) ", folded)
	require.Regexp(t, `(?m)^-- \d+ more: \d+ Events, .*; -v shows them$`, folded)
	require.Equal(t, all, diff(1, "-v"))
	require.Contains(t, diff(1, "--events"), "+ Event ")
	require.Contains(t, diff(1, "events", "--verbose=false"), "+ Event ", "a named type is shown")
	require.NotContains(t, diff(1, "--only", "spec"), "status.")
	require.Regexp(t, `(?m)^~ Deployment shop/web\n    spec.replicas 3 → 5\n`, diff(1, "deployments", "--path", "spec.replicas"))
	require.Regexp(t, `^-- \d+ more: .*\n$`, diff(0, "nodes", "--only", "spec", "--ignore", "metadata", "--ignore", "spec"))
	require.Regexp(t, `^\+ Pod shop/web-`, diff(1, "pods", "--index", "label=app=web", "-o", "text"))
}

func TestDiffSuggestsAPathIfNoObjectHasThePath(t *testing.T) {
	b := story(t)
	for path, want := range map[string]string{
		"spec.replicaz": `Note: no version in this scope has --path "spec.replicaz"; did you mean spec.replicas?`,
		"nowhere.to.be": `Note: no version in this scope has --path "nowhere.to.be"` + "\n",
		"spec.replicas": "",
	} {
		got := b.replayed(t, "diff", "deployments", "-A", "--from", "2020-01-01", "--path", path)
		require.Contains(t, got.err, want, path)
		if want == "" {
			require.NotContains(t, got.err, "--path")
		}
	}
}
