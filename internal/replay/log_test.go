package replay

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/replay/entries"
	"github.com/kuberewind/kuberewind/internal/replay/signals"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

const webLog = `Deployment shop/web  uid 00000001-0000-4000-8000-000000000000  (life 1 of 2)
 2026-03-10T12:01:00.000Z  Added    kubectl-create            created
 2026-03-10T12:02:00.000Z  Updated  kubectl/scale             spec.replicas 3 → 5
 2026-03-10T12:03:00.000Z  Updated  helm                      + metadata.labels.app=web; spec.template.spec.containers[web].image nginx:1.25 → nginx:1.27
 2026-03-10T12:04:00.000Z  Updated  -                         nothing but metadata.managedFields
 2026-03-10T12:07:00.000Z  Deleted  -                         deleted; last proved writer helm at 12:03:00.000

Deployment shop/web  uid 00000002-0000-4000-8000-000000000000  (life 2 of 2)
 2026-03-10T12:08:00.000Z  Added    helm                      created
 2026-03-10T12:12:00.000Z  Updated  helm                      spec.replicas 1 → 2
-- pause: no recorder ran from 2026-03-10T12:12:00.000Z to 2026-03-10T12:20:00.000Z; the recorder caught up afterwards, and these times are estimates
~2026-03-10T12:16:00.000Z  Updated  kubectl/scale             spec.replicas 2 → 4
`

func TestTheLogSeparatesTheLivesOfAName(t *testing.T) {
	got := story(t).replayed(t, "log", "deployment/web", "-n", "shop", "--utc")
	require.Zero(t, got.code, got.err)
	_, got.out, _ = strings.Cut(got.out, " on\n") // cut the line with the beginning of the recording
	require.Equal(t, webLog, got.out)
}

func TestTheLogOfANamespaceHasGapsAndPausesInOrder(t *testing.T) {
	b := story(t)
	got := b.replayed(t, "log", "-n", "shop", "--utc", "--since", "2026-03-10T12:06:00Z")
	require.Zero(t, got.code, got.err)
	require.Equal(t, `-- gap: versions of configmaps may be missing from 2026-03-10T12:00:00.000Z to 2026-03-10T12:11:00.000Z: expired (too old); a list then showed 0 new, 1 changed, 1 vanished, 0 unchanged
 2026-03-10T12:06:00.000Z  Updated  Secret shop/creds                     kubectl                   data.password changed
 2026-03-10T12:07:00.000Z  Deleted  Deployment shop/web                   -                         deleted; last proved writer helm at 12:03:00.000
 2026-03-10T12:08:00.000Z  Added    Deployment shop/web                   helm                      created
 2026-03-10T12:11:00.000Z  Sync     ConfigMap shop/settings               -                         found changed by a list after a gap; data.mode slow → fast
 2026-03-10T12:11:00.000Z  Deleted  ConfigMap shop/old                    -                         deleted: a list no longer held it
 2026-03-10T12:12:00.000Z  Updated  Deployment shop/web                   helm                      spec.replicas 1 → 2
-- pause: no recorder ran from 2026-03-10T12:12:00.000Z to 2026-03-10T12:20:00.000Z; the recorder caught up afterwards, and these times are estimates
~2026-03-10T12:16:00.000Z  Updated  Deployment shop/web                   kubectl/scale             spec.replicas 2 → 4
`, got.out, "and nothing of nodes, which are in no namespace")
	require.Contains(t, got.err, "the record ends at")
}

// seqs returns the seqs of a log in JSON, and the kinds of its notes.
func seqs(t *testing.T, out string) (found []int64, notes []string) {
	t.Helper()
	for line := range strings.Lines(out) {
		var e struct {
			Seq  int64
			Note *entries.Remark
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		if e.Note != nil {
			notes = append(notes, e.Note.Kind)
			continue
		}
		found = append(found, e.Seq)
	}
	return found, notes
}

func TestTheLogIsBoundedAndFiltered(t *testing.T) {
	b := story(t)
	for args, want := range map[string][]int64{
		"-A":                                     {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
		"-n shop deployments":                    {3, 4, 5, 6, 10, 11, 14, 15},
		"-n shop --kind Deployment":              {3, 4, 5, 6, 10, 11, 14, 15},
		"-n shop nodes,secrets":                  {7, 8, 9},
		"-n other":                               nil,
		"nodes":                                  {9},
		"-A --type sync":                         {1, 2, 12},
		"-A --type added,Deleted":                {3, 7, 9, 10, 11, 13},
		"-A --manager kube*":                     {3, 4, 7, 8, 9, 15},
		"-A --path spec.replicas":                {3, 4, 10, 11, 14, 15},
		"-A --path spec.replicas --type Updated": {4, 14, 15},
		"-A --path spec.template.spec.containers[*].image --type Updated":   {5},
		"-A --path /spec/template/spec/containers/*/image --type Updated":   {5},
		"-A --path spec.template.spec.containers[web].image --type Updated": {5},
		"-A --path spec.template.spec.containers[log].image --type Updated": nil,
		"-A --path metadata.managedFields --type Updated":                   {4, 5, 6, 8, 14, 15},
		"-A --path data --path metadata.labels":                             {5, 7, 8, 10, 12, 13},
		"-A --limit 2":                                                      {14, 15},
		"-A --reverse":                                                      {15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3},
		"-A --reverse --limit 2":                                            {15, 14},
		"-A --since seq:9 --until seq:11":                                   {9, 10, 11},
		"-n shop deployments --since rv:105 --until rv:111":                 {5, 6, 10, 11},
		"-n shop deployment/web --since rv:105 --until rv:111":              {5, 6, 10, 11},
		"-n shop --since 2026-03-10T12:02:00Z --until 2026-03-10T12:03:00Z": {4, 5},
		"-n shop --since 2026-03-10T12:17:00Z":                              nil, // the recorder caught up later on a change of 12:16
		"-n shop --since 2026-03-10T12:15:00Z":                              {15},
		"-n shop --since 2026-03-10T12:11:30Z --until 2026-03-10T12:15:00Z": {14},
		"-n shop --since 2026-03-10T12:11:30Z --until 2026-03-10T12:17:00Z": {14, 15},
	} {
		if !strings.Contains(args, "--since") {
			args += " --since 2026-03-10T00:00:00Z"
		}
		t.Run(args, func(t *testing.T) {
			got := b.replayed(t, append([]string{"log", "-o", "json"}, strings.Fields(args)...)...)
			require.Zero(t, got.code, got.err)
			found, _ := seqs(t, got.out)
			require.Equal(t, want, found)
		})
	}
}

func TestLogDiffIsYAMLWithoutBookkeeping(t *testing.T) {
	b := story(t)
	got := b.replayed(t, "log", "deployment/web", "-n", "shop", "--utc", "--diff", "--since", "seq:4", "--until", "seq:6")
	require.Contains(t, got.out, `Updated  helm
    --- a/deployments.apps/shop/web  the version before
    +++ b/deployments.apps/shop/web  rv 105
    @@ -1,6 +1,8 @@
     apiVersion: apps/v1
     kind: Deployment
     metadata:
    +  labels:
    +    app: web
       name: web
`)
	require.NotContains(t, got.out, "managedFields:")
	require.Contains(t, b.replayed(t, "log", "deployment/web", "-n", "shop", "--diff", "--all-fields").out, "+  managedFields:")
}

func TestInvalidArgumentsAreRejected(t *testing.T) {
	b := story(t)
	for args, want := range map[string]string{
		"log widgets -A":                     "the server doesn't have a resource type \"widgets\"",
		"log deployment/none -n shop":        `deployments.apps "none" was never recorded in namespace shop`,
		"log -A --path a..b":                 `path "a..b": a name is missing`,
		"log -A --type gone":                 `--type "gone": use one of Added, Updated, Deleted, Sync`,
		"log -A --manager [":                 "--manager \"[\": syntax error in pattern",
		"log -A --since yesteryear":          "--since: not an instant",
		"log -A --since 1x":                  "--since: not an instant",
		"log -A --since 26.11.2025":          "--since: not an instant",
		"get pods -A --at seq:1 --at seq:2":  `invalid argument "seq:2" for "--at" flag: the flag is set twice, first to "seq:1"; set it once`,
		"log -A --since seq:9 --until seq:3": "--since seq:9 is after --until seq:3",
		"log -A --since 2026-03-10T12:10:00Z --until 2026-03-10T12:05:00Z": "--since 2026-03-10T12:10:00Z is after --until",
		"log deployment/web -n shop --since rv:111 --until rv:105":         "--since rv:111 is after --until rv:105",
		"log -A --until 2020-01-01T00:00:00Z":                              "--until: ",
		"log , -A":                                                         `the server doesn't have a resource type ""`,
		"log -A -f --until now":                                            "--follow has no end",
		"log -A -f --limit 3":                                              "--tail shows the newest deltas first",
		"log -A --tail 3":                                                  "--tail needs --follow",
		"log -A --around now --since 1h":                                   "--around has a beginning and an end",
		"log -A --within 5m":                                               "--within needs an instant",
		"log -A --around now --within -5m":                                 `invalid argument "-5m" for "--within" flag: use a duration such as 30s, 5m, 2h or 1d12h`,
		"log -A --limit 0":                                                 "--limit 0: use 1 or more",
		"log -A --only everything":                                         `--only "everything": use one of spec, status, all`,
		"log -A --ignore a..b":                                             `--ignore: path "a..b"`,
		"log -A --index color=red":                                         `unknown index "color"`,
		"log -A -l =":                                                      "--selector: ",
		"log -A -o yaml":                                                   `--output "yaml": use one of text, wide, json`,
		"log deployment/web configmap/settings -n shop -f":                 "--follow takes one object",
		"coverage pods":                                                    "the server doesn't have a resource type",
		"coverage configmap/settings":                                      "coverage takes resources",
		"coverage --since now --until seq:1":                               "is after --until",
		"verify -o yaml":                                                   "use one of text, json",
		"verify --against-cluster --kubeconfig /none":                      "does not exist",
	} {
		t.Run(args, func(t *testing.T) {
			got := b.replayed(t, strings.Fields(args)...)
			require.Equal(t, 1, got.code)
			require.Contains(t, got.err, want)
			require.Empty(t, got.out)
		})
	}
}

func TestTheLogIsEmptyBeforeTheRecordBegan(t *testing.T) {
	got := story(t).replayed(t, "log", "-A", "--since", "2020-01-01T00:00:00Z", "-o", "json")
	require.Zero(t, got.code)
	require.Contains(t, got.err, "the record begins at")
	found, _ := seqs(t, got.out)
	require.Len(t, found, 13)
}

func TestTheLogHasALineForTheBeginningOfARecordingOrAGap(t *testing.T) {
	b := newBook(t)
	settings := b.object("configmaps", "shop", "settings", settingsUID, "kubectl", "", `,"data":{"mode":"slow"}`)
	first := b.Item("configmaps", delta.Sync, delta.SourceList, settings)
	first.Observed = b.Now
	b.Now = b.Now.Add(time.Millisecond) // a list ends after the recorder observed its objects
	b.listed("configmaps", "first_list", delta.SourceList, delta.Marker{}, first)
	b.at("12:02")
	b.write(delta.Updated, "configmaps", b.object("configmaps", "shop", "settings", settingsUID, "kubectl", "", `,"data":{"mode":"fast"}`))
	b.interrupted("configmaps", "expired", "too old")

	got := b.replayed(t, "log", "configmap/settings", "-n", "shop", "-o", "json")
	require.Zero(t, got.code, got.err)
	var kinds []string
	for line := range strings.Lines(got.out) {
		var e struct {
			Type string
			Note *entries.Remark
		}
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Note != nil {
			e.Type = e.Note.Kind
		}
		kinds = append(kinds, e.Type)
	}
	require.Equal(t, []string{"began", "Sync", "Updated", "gap"}, kinds)
}

func TestAnEmptyLogHasANote(t *testing.T) {
	got := story(t).replayed(t, "log", "-n", "nowhere", "--path", "spec.replicas", "--since", "seq:1")
	require.Zero(t, got.code)
	require.Contains(t, got.err, "no matching object changed in that time")
	got = story(t).replayed(t, "log", "-n", "shop", "--since", "seq:1")
	require.NotContains(t, got.err, "no matching object")
}

// damage changes a row by SQL, which no program does.
func (b *book) damage(sql string, args ...any) {
	b.t.Helper()
	conn, err := pgx.Connect(context.Background(), b.DB.URL())
	require.NoError(b.t, err)
	defer func() { require.NoError(b.t, conn.Close(context.Background())) }()
	tag, err := conn.Exec(context.Background(), sql, args...)
	require.NoError(b.t, err)
	require.EqualValues(b.t, 1, tag.RowsAffected())
}

func TestTheLogNamesADamagedRowAndShowsTheRest(t *testing.T) {
	b := story(t)
	b.damage(`UPDATE kuberewind.deltas_data SET patch = '[{"op":"replace","path":"/spec/replicas","old":3,"value":6}]' WHERE seq = 4`)

	got := b.replayed(t, "log", "-A", "--since", "seq:1", "-o", "json")
	require.Equal(t, 1, got.code)
	found, notes := seqs(t, got.out)
	require.Equal(t, []int64{3, 7, 8, 9, 11, 12, 13, 14, 15}, found)
	require.Contains(t, notes, "damaged")
	require.Contains(t, got.err, "seq 4 of deployments.apps shop/web is damaged")

	got = b.replayed(t, "log", "deployment/web", "-n", "shop")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "-- seq 4 of deployments.apps shop/web is damaged: it does not fold to the digest on record")
	require.Contains(t, got.out, "spec.replicas 2 → 4")

	got = b.replayed(t, "diff", "-A", "--from", "seq:2", "--to", "seq:5", "-o", "name")
	require.Equal(t, 2, got.code)
	require.Contains(t, got.err, "seq 4 of deployments.apps shop/web is damaged")

	got = b.replayed(t, "verify")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "FAIL fold: seq 4: ")
	require.Regexp(t, `verify found \d+ faults? in the record\.`, got.out)
}

func TestAFollowedLogEndsWithAnInterrupt(t *testing.T) {
	b := story(t)
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	ctx, interrupt := context.WithCancelCause(t.Context())
	reader, writer := io.Pipe()
	var errOut strings.Builder
	code := make(chan int, 1)
	go func() {
		args := []string{"log", "deployments", "-n", "shop", "-f", "--since", "seq:15", "--utc", "--database", b.DB.URL()}
		code <- Execute(ctx, "replay", args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: writer, ErrOut: &errOut})
		_ = writer.Close() // closing a pipe does not fail
	}()
	lines := bufio.NewScanner(reader)
	await := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the log ended before %q: %s", want, errOut.String())
	}
	await("spec.replicas 2 → 4")
	b.at("12:30")
	b.write(delta.Updated, "deployments", b.web(secondUID, "kubectl/scale", 9, "nginx:2", ""))
	await("spec.replicas 4 → 9")
	interrupt(&signals.Signal{Name: "SIGINT", Code: 130})
	for lines.Scan() {
		t.Errorf("after the interruption: %s", lines.Text())
	}
	require.Zero(t, <-code, errOut.String())
}

func TestTheLogStreamsTwoThousandVersionsOfOneObject(t *testing.T) {
	b := newBook(t)
	b.listed("configmaps", "first_list", delta.SourceList, delta.Marker{})
	const versions = 2_000
	filler := strings.Repeat("x", 10_000)
	kind := delta.Added
	for n := 0; n < versions; {
		var items []postgres.Item
		for range 500 {
			n++
			o := b.object("configmaps", "shop", "settings", settingsUID, "kubectl", "", fmt.Sprintf(`,"data":{"n":"v%d","filler":%q}`, n, filler))
			items = append(items, b.Item("configmaps", kind, delta.SourceWatch, o))
			kind = delta.Updated
		}
		b.Commit(items...)
	}
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	var lines, peak int
	var memory runtime.MemStats
	counter := writerFunc(func(text []byte) (int, error) {
		if lines++; lines%400 == 0 {
			runtime.GC()
			runtime.ReadMemStats(&memory)
			peak = max(peak, int(memory.HeapAlloc))
		}
		return len(text), nil
	})
	runtime.GC()
	runtime.ReadMemStats(&memory)
	start := int(memory.HeapAlloc)
	var errOut strings.Builder
	code := Execute(t.Context(), "replay", []string{"log", "configmap/settings", "-n", "shop", "--database", b.DB.URL()},
		genericiooptions.IOStreams{In: strings.NewReader(""), Out: counter, ErrOut: &errOut})
	require.Zero(t, code, errOut.String())
	require.Equal(t, versions+2, lines, "a title, and the beginning of the recording")
	require.Less(t, peak-start, versions*len(filler)/2, "all versions in memory would need twice as much")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(text []byte) (int, error) { return f(text) }

func TestAnAuditorReadsTheLogButNotTheChain(t *testing.T) {
	b := story(t)
	login := b.DB.Login(t, migrations.AuditorRole)
	got := b.replayedAs(t, login, "log", "deployment/web", "-n", "shop", "--utc")
	require.Zero(t, got.code, got.err)
	got = b.replayedAs(t, login, "verify")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, "chain: not checked: this login may not read the tables")
	require.Contains(t, got.out, "verify found no fault in the parts that it could check. It could not check the others.")
}
