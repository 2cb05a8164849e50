package replay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// varying lists the parts that differ in another recording of the scene: times, durations, UIDs, and the names that
// controllers make.
var varying = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\d\d:\d\d:\d\d\.\d{3}`), "TIME"},
	{regexp.MustCompile(`-- \w{3} \d{4}-\d\d-\d\d \+00:00`), "-- DAY"},
	{regexp.MustCompile(`after [\d.a-zµ]+\n`), "after D\n"},
	{regexp.MustCompile(`uid [-0-9a-f]{36}`), "uid UID"},
	{regexp.MustCompile(`web-[0-9a-f]{7,10}-[0-9a-z]{5}\b`), "web-SET-POD"},
	{regexp.MustCompile(`web-[0-9a-f]{7,10}\b`), "web-SET"},
}

func alike(text string) string {
	for _, v := range varying {
		text = v.pattern.ReplaceAllString(text, v.by)
	}
	return text
}

// The summary of the bad rollout of the shop.
const badRollout = `
Rollouts of Deployment shop/web:
 TIME  revision 1: created  [kubectl-client-side-apply]
               done after D
 TIME  revision 2: spec.containers[web].image registry.example/web:v1 → registry.example/web:v2-broken  [kubectl-set]
               stuck from TIME: ImagePullBackOff of 3 Pods: Back-off pulling image
               stuck from TIME: ProgressDeadlineExceeded of Deployment web: ReplicaSet "web-SET" has timed out progressing.
               undone after D
 TIME  revision 3: spec.containers[web].image registry.example/web:v2-broken → registry.example/web:v1  [kubectl]
               done after D
`

func TestAStoryIndentsOwnedObjectsAndSummarizesRollouts(t *testing.T) {
	b := newScene(t)
	got := b.replayed(t, "story", "deployment/web", "-n", "shop", "--utc", "--verbose=false")
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `(?m)^-- \d+ more: \d+ .* status, .* Pod bindings, .*; -v shows them$`, got.out)
	got.out = alike(got.out)
	require.Contains(t, got.out, badRollout)
	for _, line := range []string{
		"Deployment shop/web  uid UID\n-- 3 resources recorded from 2026-11-25TTIMEZ on\n-- DAY\n TIME  Deployment web  created  [kubectl-client-side-apply]\n",
		"\n TIME  Deployment web  spec.replicas 3 → 5  [kubectl/scale]\n",
		"\n TIME    ReplicaSet web-SET  created  [kube-controller-manager]\n",
		"\n TIME      Pod web-SET-POD  created  [kube-controller-manager]\n",
		"\n TIME      Pod web-SET-POD  Warning Failed: Failed to pull image \"registry.example/web:v2-broken\": not found  [kwok_controller]\n",
		"\n TIME  Deployment web  + metadata.annotations.incident=\"42\"  [kubectl-annotate]\n",
	} {
		require.Contains(t, got.out, line)
	}
	require.NotContains(t, got.out, "checkout", "checkout is another Deployment of the namespace")
}

// imageSeq returns the seq of the delta that gave the Deployment web an image.
func imageSeq(t *testing.T, b *book, tag string) (seq int64) {
	t.Helper()
	require.NoError(t, b.DB.Connect(t).QueryRow(t.Context(), `SELECT min(seq) FROM kuberewind.changes WHERE kind = 'Deployment' AND name = 'web' AND type = 'Updated' AND new = $1`,
		fmt.Sprintf("%q", "registry.example/web:"+tag)).Scan(&seq))
	return seq
}

func TestAStoryThatBeginsLaterShowsARunningRollout(t *testing.T) {
	b := newScene(t)
	got := b.replayed(t, "story", "deployment", "web", "-n", "shop", "--utc", "--since", fmt.Sprint("seq:", imageSeq(t, b, "v2-broken")+1), "--until", fmt.Sprint("seq:", imageSeq(t, b, "v1")))
	require.Zero(t, got.code, got.err)
	got.out = alike(got.out)
	require.Contains(t, got.out, `
Rollouts of Deployment shop/web:
 before        revision 2: under way
               stuck from TIME: ImagePullBackOff of 3 Pods: Back-off pulling image
               stuck from TIME: ProgressDeadlineExceeded of Deployment web: ReplicaSet "web-SET" has timed out progressing.
               replaced at TIME
`)
	require.NotContains(t, got.out, "kubectl-set")
}

func TestTheStoryOfAJobHasItsPodsAndEvents(t *testing.T) {
	b := newScene(t)
	got := b.replayed(t, "story", "job/migrate", "-n", "shop", "--utc")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "  Job migrate  created  [kubectl-create]\n")
	require.Contains(t, got.out, "  Job migrate  Warning BackoffLimitExceeded: ")
	require.Contains(t, got.out, "    Pod migrate-")
	require.NotContains(t, got.out, "Rollouts of")
}

// A storyLine holds the JSON fields that the tests read.
type storyLine struct {
	Seq     int64
	Type    string
	Kind    string
	Class   string
	Depth   int
	Owner   *struct{ Kind, Name, UID string }
	Event   *struct{ Reason string }
	About   *struct{ Kind, Name, UID string }
	Note    *struct{ Kind string }
	Rollout *struct {
		Revision, Outcome string
		Start, End        *struct {
			Seq     int64
			Manager string
		}
		Changes  []struct{ Path string }
		Troubles []struct {
			Reason  string
			Objects []struct{ Kind string }
		}
	}
}

func storyLines(t *testing.T, out string) (all []storyLine) {
	t.Helper()
	lines := bufio.NewScanner(strings.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var l storyLine
		require.NoError(t, json.Unmarshal(lines.Bytes(), &l))
		all = append(all, l)
	}
	return all
}

func TestAStoryInJSONIsComplete(t *testing.T) {
	b := newScene(t)
	got := b.replayed(t, "story", "deployment/web", "-n", "shop", "-o", "json")
	require.Zero(t, got.code, got.err)
	depths, counted := map[string]int{}, 0
	var outcomes []string
	for _, l := range storyLines(t, got.out) {
		switch {
		case l.Rollout != nil:
			outcomes = append(outcomes, l.Rollout.Revision+" "+l.Rollout.Outcome)
			if l.Rollout.Revision == "2" {
				require.Equal(t, "kubectl-set", l.Rollout.Start.Manager)
				require.Equal(t, imageSeq(t, b, "v1"), l.Rollout.End.Seq)
				require.Equal(t, "spec.containers[web].image", l.Rollout.Changes[0].Path)
				require.Equal(t, "ImagePullBackOff", l.Rollout.Troubles[0].Reason)
				require.Len(t, l.Rollout.Troubles[0].Objects, 3)
			}
		case l.Note != nil:
		case l.Event != nil:
			require.NotNil(t, l.About)
			if l.Type != "Added" {
				counted++
			}
		default:
			depths[l.Kind] = l.Depth
			require.Equal(t, l.Depth > 0, l.Owner != nil)
			if l.Class != "shown" {
				counted++
			}
		}
	}
	require.Equal(t, []string{"1 done", "2 undone", "3 done"}, outcomes[:3])
	require.Equal(t, map[string]int{"Deployment": 0, "ReplicaSet": 1, "Pod": 2}, depths)
	text := b.replayed(t, "story", "deployment/web", "-n", "shop", "--utc", "--verbose=false").out
	require.Contains(t, text, fmt.Sprintf("\n-- %d more: ", counted), "the text counts the folded deltas")
}

func TestAStoryFoldsNothingInAPipe(t *testing.T) {
	b := newScene(t)
	all := 0
	for _, l := range storyLines(t, b.replayed(t, "story", "deployment/web", "-n", "shop", "-o", "json").out) {
		if l.Seq > 0 {
			all++
		}
	}
	text := b.replayed(t, "story", "deployment/web", "-n", "shop", "--utc")
	require.NotContains(t, text.out, " more: ")
	require.Len(t, regexp.MustCompile(`(?m)^[ ~]\d\d:\d\d:\d\d\.\d{3}  +[A-Z]`).FindAllString(before(text.out, "\nRollouts of"), -1), all)
	for _, line := range strings.Split(text.out, "\n") {
		require.False(t, strings.HasSuffix(line, "…"), line)
	}

	said := b.replayed(t, "story", "deployment/web", "-n", "shop", "-o", "json", "--only", "spec")
	require.Regexp(t, `(?m)^Note: \d+ more: `, said.err, "a flag also folds JSON, and standard error has the number")
}

func before(text, mark string) string {
	head, _, _ := strings.Cut(text, mark)
	return head
}

func TestTheErrorOfAnEmptyStoryHasTheReason(t *testing.T) {
	b := newScene(t)
	for args, want := range map[string]string{
		"story deployment/nobody -n shop":                                    "error: deployments.apps \"nobody\" was never recorded in namespace shop\n",
		"story deployment/web -n billing":                                    "error: deployments.apps \"web\" was never recorded in namespace billing\n",
		"story job/migrate -n shop --until seq:300":                          "error: jobs.batch \"migrate\" did not exist in that time; \"replay log jobs.batch/migrate -n shop\" shows when it existed\n",
		"story deployments -n shop":                                          "error: name one object: TYPE/NAME\n",
		"story deployment/web deployment/checkout -n shop":                   "error: name one object: TYPE/NAME\n",
		"story deployment/web -n shop --since seq:400 --until seq:300":       "error: --since seq:400 is after --until seq:300\n",
		"story deployment/web -n shop --since 2020-01-01 --until 2020-01-02": "error: --until: ",
	} {
		got := b.replayed(t, strings.Fields(args)...)
		require.Equal(t, 1, got.code, args)
		require.Contains(t, got.err, want, args)
		require.Empty(t, got.out, args)
	}
}

func TestADamagedDeltaIsALineOfTheStory(t *testing.T) {
	b := newScene(t)
	seq := imageSeq(t, b, "v2-broken")
	_, err := b.DB.Connect(t).Exec(t.Context(), `UPDATE kuberewind.deltas_data SET digest = decode(repeat('00', 16), 'hex') WHERE seq = $1`, seq)
	require.NoError(t, err)
	got := b.replayed(t, "story", "deployment/web", "-n", "shop", "--utc")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, fmt.Sprintf("\n-- seq %d of deployments.apps shop/web is damaged: ", seq))
	require.Contains(t, alike(got.out), "\n TIME      Pod web-SET-POD  created")
}
