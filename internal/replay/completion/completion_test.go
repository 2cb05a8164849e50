package completion_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/replay"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// scene returns a database with the record of a shop.
func scene(t *testing.T) *pgtest.Database {
	t.Helper()
	database := pgtest.New(t, scenetest.Record)
	t.Setenv("REPLAY_DATABASE", database.URL())
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	return database
}

// called runs the program like a shell or kubectl.
func called(t *testing.T, name string, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // A completion without a deadline gives up after two seconds.
	defer cancel()
	code = replay.Execute(ctx, name, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &stdout, ErrOut: &stderr})
	return code, stdout.String(), stderr.String()
}

// completed returns the words for the end of a line, without their descriptions, and the directive for the shell.
func completed(t *testing.T, line string) (words []string, directive string) {
	t.Helper()
	args := strings.Split(line, " ")
	code, out, _ := called(t, "replay", append([]string{"__completeNoDesc"}, args...)...)
	require.Zero(t, code, line)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	return lines[:len(lines)-1], lines[len(lines)-1]
}

func TestCompletionOffersWordsOfTheRecord(t *testing.T) {
	scene(t)
	for line, want := range map[string]string{
		"get pod":                                     "podcertificaterequests poddisruptionbudgets pods podtemplates",
		"get pods,namesp":                             "pods,namespaces",
		"get deployments.":                            "deployments.apps",
		"get nod":                                     "nodes",
		"story deploym":                               "deployments/",
		"story deployments -n shop we":                "web",
		"coverage namesp":                             "namespaces",
		"coverage namespaces ":                        "",
		"get nodes ":                                  "node-000 node-001 node-002 node-003",
		"get nodes node-000 node-001 ":                "node-002 node-003",
		"get nodes/":                                  "nodes/node-000 nodes/node-001 nodes/node-002 nodes/node-003",
		"get nodes/node-000 nod":                      "nodes/",
		"get nodes/node-000 nodes/node-00":            "nodes/node-001 nodes/node-002 nodes/node-003",
		"get configmaps -n shop se":                   "settings",
		"get configmaps -A se":                        "settings",
		"get configmaps se":                           "",
		"describe nod":                                "nodes",
		"describe nodes node-00":                      "node-000 node-001 node-002 node-003",
		"describe nodes/node-003 configmaps/se -n sh": "shop",
		"get pods,nodes no":                           "",
		"get nonsense ":                               "",
		"verify ":                                     "",
		"get pods -n ":                                "billing default kube-node-lease kube-public kube-system shop",
		"get pods --namespace=bi":                     "billing",
		"log --cluster ":                              "scene",
		"log deployments/web -n shop --manager ":      "kube-controller-manager kubectl kubectl-annotate kubectl-client-side-apply kubectl-label kubectl-set",
		"log -A --manager kubelet,kubectl-l":          "kubelet,kubectl-label",
		"log --kind pods,nod":                         "pods,nodes",
		"log --type Added,":                           "Added,Added Added,Updated Added,Deleted Added,Sync",
		"log --color a":                               "auto always",
		"log --only s":                                "spec status",
		"get pods --index no":                         "node=",
		"get pods --index node=node-00":               "node=node-000 node=node-001 node=node-002 node=node-003",
		"log deployments/web -n shop --path spec.rep": "spec.replicas",
		"log deployments/web -n shop --path metadata.anno":                      "metadata.annotations",
		"log deployments -n shop --path spec.template.spec.c":                   "spec.template.spec.containers",
		"log deployments/web -n shop --path spec.template.spec.containers[":     "spec.template.spec.containers[*] spec.template.spec.containers[web]",
		"log deployments/web -n shop --path spec.template.spec.containers[web]": "spec.template.spec.containers[web].image spec.template.spec.containers[web].imagePullPolicy spec.template.spec.containers[web].name spec.template.spec.containers[web].resources spec.template.spec.containers[web].terminationMessagePath spec.template.spec.containers[web].terminationMessagePolicy",
		"log -A --ignore sta":   "status",
		"diff --from seq:1 -o ": "text json name unified stat",
		"snapshot --format t":   "tar",
	} {
		words, _ := completed(t, line)
		require.Equal(t, want, strings.Join(words, " "), line)
	}
}

func TestAnIncompleteWordGetsNoSpace(t *testing.T) {
	scene(t)
	const noSpace, noFiles = 2, 4
	for line, want := range map[string]int{
		"get pods --index no":                              noSpace | noFiles,
		"get nodes/node-000 nod":                           noSpace | noFiles,
		"log deployments/web -n shop --path spec.rep":      noFiles,
		"log deployments/web -n shop --path metadata.anno": noSpace | noFiles,
		"get nodes ":         noFiles,
		"snapshot --config ": 0,
	} {
		_, directive := completed(t, line)
		require.Equal(t, fmt.Sprintf(":%d", want), directive, line)
	}
}

func TestCompletionOffersNamesOfTheInstant(t *testing.T) {
	scene(t)
	names := func(line string) []string {
		words, _ := completed(t, line)
		require.NotEmpty(t, words, line)
		return words
	}
	then, now := names("get pods --at seq:300 -n shop web"), names("get pods -n shop web")
	gone := slices.DeleteFunc(slices.Clone(then), func(name string) bool { return slices.Contains(now, name) })
	come := slices.DeleteFunc(slices.Clone(now), func(name string) bool { return slices.Contains(then, name) })
	require.NotEmpty(t, gone)
	require.NotEmpty(t, come)
	require.Equal(t, then, names("log --until seq:300 pods -n shop web"))
	// A time range offers all objects that lived in it.
	require.Subset(t, names("diff --from seq:300 --to now pods -n shop web"), slices.Concat(gone, come))
	require.Subset(t, names("log --since seq:300 pods -n shop web"), slices.Concat(gone, come))
	// legacy is a deleted namespace.
	require.NotContains(t, names("get pods -n "), "legacy")
	require.Contains(t, names("get pods --at seq:300 -n "), "legacy")
}

func TestCompletionOffersNoNameThatAShellWouldRun(t *testing.T) {
	database := scene(t)
	pool := database.Pool(t)
	hostile := []string{"$(reboot)", "`reboot`", "a b", "a;b", "a&b", "a|b", "a>b", "-rf", "'q", `"q`, `back\slash`, "a*", "a\nb", "a\tb", "\x1b[31m", "\u202egpj", "!1", "#1", "~root", "ünicode"}
	for i, name := range append(hostile, "system:kube-scheduler@1.2_3") {
		const life = `
			WITH stream AS (SELECT cluster, stream FROM kuberewind.streams WHERE resource = 'clusterroles'),
				life AS (INSERT INTO kuberewind.lives SELECT cluster, $1, stream, '', $2, $2 FROM stream)
			INSERT INTO kuberewind.living SELECT cluster, stream, $1 FROM stream`
		_, err := pool.Exec(t.Context(), life, 1_000_000+i, name)
		require.NoError(t, err)
	}
	words, _ := completed(t, "get clusterroles ")
	require.Contains(t, words, "system:kube-scheduler@1.2_3")
	for _, name := range hostile {
		require.NotContains(t, words, name)
	}
	require.NotContains(t, strings.Join(words, "\n"), "\x1b")
	for _, word := range words {
		require.Regexp(t, `^[a-zA-Z0-9.:@_/-]+$`, word)
	}
}

func TestALongListOfWordsHasANote(t *testing.T) {
	database := scene(t)
	const lives = `
		WITH stream AS (SELECT cluster, stream FROM kuberewind.streams WHERE resource = 'clusterroles'),
			life AS (INSERT INTO kuberewind.lives SELECT cluster, 1000000 + n, stream, '', 'many-' || n, n::text FROM stream, generate_series(1, 1001) n)
		INSERT INTO kuberewind.living SELECT cluster, stream, 1000000 + n FROM stream, generate_series(1, 1001) n`
	_, err := database.Pool(t).Exec(t.Context(), lives)
	require.NoError(t, err)
	words, _ := completed(t, "get clusterroles many-")
	require.Len(t, words, 1001)
	require.Equal(t, "_activeHelp_ These are the first 1000; type more letters to see others.", words[1000])
	words, _ = completed(t, "get clusterroles many-99")
	require.Len(t, words, 11)
}

func TestAFailureOffersNothingAndPrintsNothing(t *testing.T) {
	database := scene(t)
	silent := func(line string) {
		t.Helper()
		code, out, errs := called(t, "replay", append([]string{"__complete"}, strings.Split(line, " ")...)...)
		require.Zero(t, code, line)
		require.Equal(t, ":4\n", out, line)
		require.Equal(t, "Completion ended with directive: ShellCompDirectiveNoFileComp\n", errs, line)
	}
	silent("get pods --at nonsense ")
	silent("get pods --cluster nonsense ")
	silent("log --path spec.replicas[")
	silent("get pods --at 2020-01-01 ")
	database.RefuseConnections(t)
	silent("get pod")
	silent("get pods -n ")
	silent("get pods --cluster ")
	t.Setenv("REPLAY_DATABASE", "embedded")
	t.Setenv("REPLAY_DATA_DIR", t.TempDir())
	silent("get pod")
	silent("get pods --cluster ")
}

func TestKubectlCompletesThroughTheNameOfTheFile(t *testing.T) {
	scene(t)
	_, direct, _ := called(t, "replay", "__complete", "get", "node")
	code, plugin, _ := called(t, "/usr/local/bin/kubectl_complete-kuberewind", "get", "node")
	require.Zero(t, code)
	require.Equal(t, direct, plugin)
	require.Equal(t, "nodes\tNode\n:4\n", plugin)
}

// TestCompletionOffersTheOutputFormsThatACommandTakes reads the forms of each command from its error.
func TestCompletionOffersTheOutputFormsThatACommandTakes(t *testing.T) {
	scene(t)
	commands, _ := completed(t, "")
	require.Contains(t, commands, "log")
	refusal := regexp.MustCompile(`"nonsense": use one of ([a-z, ]+)`)
	found := 0
	for _, command := range commands {
		if command == "snapshot" {
			continue // its -o names a file
		}
		args := []string{command, "-o", "nonsense"}
		if command == "diff" {
			args = append(args, "--from", "seq:1")
		}
		_, _, errs := called(t, "replay", args...)
		taken := refusal.FindStringSubmatch(errs)
		if taken == nil {
			continue
		}
		found++
		words, _ := completed(t, command+" -o ")
		require.Equal(t, strings.Split(strings.TrimSpace(taken[1]), ", "), words, command)
	}
	require.GreaterOrEqual(t, found, 4)
}
