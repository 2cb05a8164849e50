package replay

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/controlplane/binaries"
)

// inBadRollout is an instant during the failing rollout, ten seconds after its start.
const inBadRollout = "2026-11-25T13:18:07Z"

// kubectlPath returns the path of the real kubectl.
func kubectlPath(t *testing.T) string {
	t.Helper()
	dir, err := binaries.Find(binaries.Kubectl)
	require.NoError(t, err)
	return filepath.Join(dir, binaries.Kubectl)
}

// kubectl runs the real kubectl at an instant.
func (b *book) kubectl(t *testing.T, at string, args ...string) answer {
	t.Helper()
	return b.asked(t, append([]string{"exec", "--at", at, "--", kubectlPath(t)}, args...)...)
}

var agesShown = regexp.MustCompile(`\b(\d+[ydhms])+\b`)

// withoutAges returns a description without ages, and without the spaces that depend on them.
func withoutAges(text string) string { return unpadded(agesShown.ReplaceAllString(text, "AGE")) }

// everyType returns the types that the scene has on record. It omits the second name of Events, which is not recorded.
func (b *book) everyType(t *testing.T) string {
	t.Helper()
	got := b.kubectl(t, inBadRollout, "api-resources", "--verbs=list", "-o", "name")
	require.Zero(t, got.code, got.err)
	types := strings.Fields(strings.ReplaceAll(got.out, "events.events.k8s.io\n", ""))
	require.Greater(t, len(types), 40)
	return strings.Join(types, ",")
}

func TestDescribeEqualsKubectlExceptForAges(t *testing.T) {
	b := newScene(t)
	folders(t)
	_, end := b.serve(t)
	for _, args := range [][]string{
		{"deployment/web", "-n", "shop"},
		{"pods", "-n", "shop", "-l", "app=web", "--show-events"},
		{"pods", "web-5798c68678-", "-n", "shop"},
		{"pod/web-5798c68678-dxd68", "configmap/settings", "-n", "shop"},
		{"certificates.example.com", "-A", "--show-events"},
		{"deploy", "web", "-n", "shop", "--show-events=false"},
		{b.everyType(t), "-A", "--show-events"},
	} {
		theirs := b.kubectl(t, inBadRollout, append([]string{"describe"}, args...)...)
		require.Zero(t, theirs.code, theirs.err)
		ours := b.asked(t, append([]string{"describe", "--at", inBadRollout}, args...)...)
		require.Zero(t, ours.code, ours.err)
		require.Equal(t, withoutAges(theirs.out), withoutAges(ours.out), args)
		require.Contains(t, ours.out, "Name:", args)
	}
	require.Zero(t, end())
}

var timesShown = regexp.MustCompile(`\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z| [+-]\d{4} \w+)`)

// ages returns the ages of a description, in order.
func ages(text string) (all []time.Duration) {
	for _, shown := range agesShown.FindAllString(timesShown.ReplaceAllString(text, "TIME"), -1) {
		if age, err := time.ParseDuration(shown); err == nil {
			all = append(all, age)
		}
	}
	return all
}

// TestKubectlShowsAgesAtTheInstantIfTimesAreShifted describes every object of the scene. So it finds each time that describe
// must shift.
func TestKubectlShowsAgesAtTheInstantIfTimesAreShifted(t *testing.T) {
	b := newScene(t)
	folders(t)
	_, end := b.serve(t)
	question := []string{"describe", b.everyType(t), "-A", "--show-events"}
	theirs := b.asked(t, append([]string{"exec", "--at", inBadRollout, "--shift-times", "--", kubectlPath(t)}, question...)...)
	require.Zero(t, theirs.code, theirs.err)
	ours := b.asked(t, append(question, "--at", inBadRollout)...)
	require.Zero(t, ours.code, ours.err)
	want, got := ages(theirs.out), ages(ours.out)
	require.Greater(t, len(want), 50)
	require.Len(t, got, len(want))
	for i := range want {
		require.InDelta(t, want[i].Seconds(), got[i].Seconds(), 3, "age %d: kubectl takes whole seconds, and takes time", i)
	}
	require.Zero(t, end())
}

func TestDescribeShowsAgesAtTheInstant(t *testing.T) {
	b := newScene(t)
	got := b.replayed(t, "describe", "deployment/web", "-n", "shop", "--at", inBadRollout)
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, `Events:
  Type    Reason             Age    From                   Message
  ----    ------             ----   ----                   -------
  Normal  ScalingReplicaSet  2m24s  deployment-controller  Scaled up replica set web-6d68b67d55 from 0 to 3
  Normal  ScalingReplicaSet  30s    deployment-controller  Scaled up replica set web-6d68b67d55 from 3 to 5
  Normal  ScalingReplicaSet  10s    deployment-controller  Scaled up replica set web-5798c68678 from 0 to 2
`)
	got = b.replayed(t, "describe", "pod", "web-5798c68678-dxd68", "-n", "shop", "--at", inBadRollout)
	require.Contains(t, got.out, "Normal   Scheduled  9s ", "a time with microseconds")
	require.Regexp(t, `Start Time: +Wed, 25 Nov 2026 1\d:\d7:57 `, got.out, "a time is the recorded time")
	got = b.replayed(t, "describe", "node", "node-001", "--at", inBadRollout)
	require.Regexp(t, `web-5798c68678-dxd68 .* 10s\n`, got.out)
	require.Regexp(t, `FailedGetResourceMetric +10s \(x4 over 55s\) `, b.replayed(t, "describe", "hpa", "ledger", "-n", "billing", "--at", inBadRollout).out)
	require.Contains(t, b.replayed(t, "describe", "events", "-n", "shop", "--at", inBadRollout).out, "Event Time:       2026-11-25T13:15:52.187494Z", "describe prints an Event's own times as times")

	const ending = "2026-11-25T13:17:57.446Z" // the deletion time of a Pod is half a second later
	terminating := b.replayed(t, "get", "pods", "-n", "shop", "-o", `jsonpath={.items[?(@.metadata.deletionTimestamp)].metadata.name}`, "--at", ending).out
	require.NotEmpty(t, terminating)
	got = b.replayed(t, "describe", "pod", strings.Fields(terminating)[0], "-n", "shop", "--at", ending)
	require.Regexp(t, `Terminating \(lasts (0s|<invalid>)\)`, got.out)
}

func TestDescribeNotesMissingParts(t *testing.T) {
	b := newScene(t)
	for call, want := range map[string]string{
		"job/migrate -n shop": `jobs.batch "migrate" not found: deleted at 2026-11-25T13:22:47.174Z, by seq:768; "replay get jobs.batch/migrate -n shop --last" shows its last state`,
		"job migrate -n shop": `deleted at 2026-11-25T13:22:47.174Z, by seq:768`,
		"pod/never -n legacy": `namespaces "legacy" not found: deleted at 2026-`,
		"ns legacy":           `namespaces "legacy" not found: deleted at 2026-`,
		"pod/never -n shop":   `Error from server (NotFound): pods "never" not found`,
		"deploymnts -n shop":  `the server doesn't have a resource type "deploymnts"; did you mean deployments.apps?`,
		"deployments -n shop --at 2020-01-01T00:00:00Z": "is before the record began",
		"deployments -n shop -l =a":                     "found '='",
		"":                                              "name a type of resource to describe",
	} {
		got := b.replayed(t, append([]string{"describe"}, strings.Fields(call)...)...)
		require.Equal(t, 1, got.code, call)
		require.Contains(t, got.err, want, call)
		require.Empty(t, got.out, call)
	}
	require.Contains(t, b.replayed(t, "describe", "pods", "-n", "nowhere").err, "No resources found in nowhere namespace.")
	got := b.replayed(t, "describe", "secret/login", "-n", "shop", "--at", inBadRollout)
	require.Zero(t, got.code, got.err)
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), "the printed sizes are the sizes of the hashes")
}

func TestDescribeNamesTheListsThatAreNotOnRecord(t *testing.T) {
	h := newHarbour(t)
	got := h.replayed(t, "describe", "pod/other", "-n", "shop", "--at", at("12:04"))
	require.Zero(t, got.code, got.err)
	require.Contains(t, unpadded(got.out), "Name: other\n")
	got = h.replayed(t, "describe", "wd", "-n", "shop", "--at", at("12:06"))
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "Colour:  red\n")
	h.at("12:40")
	events := `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{"name":""},"versions":[{"version":"v1","resources":[` +
		`{"resource":"pods","singularResource":"pod","responseKind":{"kind":"Pod"},"scope":"Namespaced","verbs":["get","list","watch"]},` +
		`{"resource":"events","singularResource":"event","responseKind":{"kind":"Event"},"scope":"Namespaced","verbs":["get","list","watch"]}]}]}]}`
	require.NoError(t, h.Sink.RecordServer(t.Context(), "/api", []byte(events)))
	h.interrupted("pods", "forbidden", "no right")
	got = h.replayed(t, "describe", "pod/other", "-n", "shop")
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), "changes of pods after")
	require.Contains(t, strings.Join(strings.Fields(got.err), " "), "Note: events were not recorded at this instant")
}
