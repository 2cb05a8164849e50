package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

// hostile holds invalid texts, by what is wrong with them.
var hostile = map[string]string{
	"steers a terminal": "a\x1b[31mred\x07\r\n\u202ecod\u2066\xff",
	"128 KiB":           strings.Repeat("x", 128<<10), // Linux gives a program no longer argument
}

// takers are calls with a text in place of the @.
var takers = []string{
	"log -A --since @", "log -A --until @", "log -A --around @", "log -A --around now --within @", "log -A --limit @", "log -A -f --tail @",
	"log -A --since seq:1 --path @", "log -A --since seq:1 --ignore @ --limit 1", "log -A --since seq:1 --manager @", "log -A --type @", "log -A --only @",
	"log -A -l @", "log -A -l app=@", "log -A --index @", "log -A --index owner=@", "log -A --index node=@", "log -n @ --since seq:1", "log -A --cluster @",
	"log -A --color @", "log -A --events=@", "log -A --verbose=@", "log -A -o @", "log deployment/@ -n shop", "log deployment/@ -n shop --owned", "log @ -A",
	"story deployment/@ -n shop", "story @/web -n shop", "story deployment/web -n @", "story deployment/web -n shop --since @", "story deployment/web -n shop --until @",
	"story deployment/web -n shop --only @", "blame deployment/@ -n shop", "blame deployment/web -n @", "blame deployment/web -n shop --at @",
	"get deployment/@ -n shop", "get deployment/@ -n shop --last", "get deployments -n @", "get @ -A", "get deployments -A --at @", "get deployments -A --index @",
	"describe deployment/@ -n shop", "describe deployment @ -n shop", "describe @ -A", "describe deployments -n @", "describe deployments -A --at @", "describe deployments -A -l @",
	"get deployments -A -l @", "get deployments -A --field-selector @", "get deployments -A --field-selector @=x", "get deployments -A -o @",
	"diff -A --from @", "diff -A --from seq:5 --to @", "diff -A --from seq:5 --only @", "diff -A --from seq:5 --ignore @", "diff -A --from seq:5 --path @",
	"diff -A --from seq:5 --index @", "diff -A --from seq:5 -l @", "diff -n @ --from seq:5", "diff deployment/@ -n shop --from seq:5",
	"coverage @", "coverage --since @", "coverage --until @", "coverage -o @", "verify --head @", "verify --head 1:@", "verify --head @:00",
	"open deployment/@ -n shop", "open @ -n shop", "open deployment/web -n @", "open --at @", "open -o @", "serve --page-listen @",
	"completion @", "@", "snapshot -n @ --format json", "snapshot --at @",
}

// called returns the answer to a call with a text in place of its @.
func (b *book) called(t *testing.T, call, text string) answer {
	t.Helper()
	args := strings.Fields(call)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "@", text)
	}
	return b.replayed(t, args...)
}

// requireReadable fails if the answer controls a terminal, fills it, or mentions the program's internals.
func requireReadable(t *testing.T, got answer) {
	t.Helper()
	require.NotContains(t, got.err, "strconv.")
	require.NotContains(t, got.err, "goroutine ")
	steers := func(r rune) bool {
		return r != '\n' && r != '\t' && !unicode.IsPrint(r)
	}
	require.Falsef(t, strings.ContainsFunc(got.err, steers), "%.300q", got.err)
	require.Falsef(t, strings.ContainsFunc(got.out, steers), "%.300q", got.out)
	for line := range strings.Lines(got.err) {
		require.Lessf(t, len(line), 5000, "%.300q", line)
	}
}

func TestHostileTextsGetAShortAnswerThatControlsNoTerminal(t *testing.T) {
	b := story(t)
	for _, call := range takers {
		for what, text := range hostile {
			t.Run(call+"/"+what, func(t *testing.T) {
				got := b.called(t, call, text)
				requireReadable(t, got)
				if got.code != 0 && got.out == "" {
					require.Regexp(t, `(?i)^(Note: .*\n)*error`, got.err)
				}
				require.Contains(t, []int{0, 1, 2}, got.code, got.err)
			})
		}
	}
}

func TestAnEmptyValueIsNotTheSameAsNoFlag(t *testing.T) {
	b := story(t)
	for _, call := range []string{
		"log -A --since @", "log -A --until @", "log -A --around @", "log -A --around now --within @", "log -A --path @", "log -A --manager @", "log -A --type @",
		"log -A --limit @", "log -A --index @", "log -A --color @", "log -A -o @", "log @ -A", "get deployments -A --at @", "diff -A --from @", "diff -A --from seq:5 --to @",
		"story deployment/web -n shop --since @", "blame deployment/web -n shop --at @", "coverage --since @", "verify --head @",
	} {
		got := b.called(t, call, "")
		require.NotZero(t, got.code, "%s: %s", call, got.out)
		require.Contains(t, got.err, "error: ", call)
		require.Empty(t, got.out, call)
	}
}

// asked are calls that read the record, at least one for each command.
var asked = []string{
	"log -A --since seq:1", "log -A --around now", "log -A --limit 3", "log deployment/web -n shop", "log deployment/web -n shop --owned", "log -A --since seq:1 -l app=web",
	"log -A --since seq:1 --index owner=00000000-0000-0000-0000-000000000000", "story deployment/web -n shop", "blame deployment/web -n shop", "get deployments -A",
	"get deployment/web -n shop --last", "describe deployment/web -n shop", "diff -A --from seq:1", "coverage", "coverage --incomplete", "verify", "verify --head 1:" + strings.Repeat("0", 64), "snapshot --format json",
}

func TestCommandsReportAnEmptyRecord(t *testing.T) {
	empty := pgtest.New(t, pgtest.EmptyRecord)
	b := bookOf(t, empty)
	for _, call := range asked {
		got := b.called(t, call, "")
		require.NotZero(t, got.code, call)
		require.Contains(t, got.err, `it is empty; "recorder run" records into it`, call)
		require.Empty(t, got.out, call)
	}
	got := b.called(t, "__complete get deployments -n @", "")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, ":4\n")
}

func TestARecordThatBeginsWithAGapCanBeRead(t *testing.T) {
	b := newBook(t)
	b.interrupted("deployments", "forbidden", "no right")
	b.at("12:05")
	b.listed("deployments", "forbidden", delta.SourceRelist, delta.Marker{Appeared: 1},
		b.Item("deployments", delta.Sync, delta.SourceRelist, b.web(webUID, "helm", 3, "nginx:1", `"labels":{"app":"web"},`)))
	for _, call := range asked {
		got := b.called(t, call, "")
		requireReadable(t, got)
		require.Contains(t, []int{0, 1}, got.code, "%s: %s", call, got.err)
		if got.code == 1 && !strings.HasPrefix(call, "verify --head") {
			require.Regexp(t, `(?m)^(error: |Error from server)`, got.err, call)
		}
	}
	require.Contains(t, b.called(t, "blame deployment/web -n shop", "").out, "before the record", "a list showed the object")
	require.Contains(t, b.called(t, "log deployment/web -n shop -v", "").out, "found by a list after a gap")
	require.Contains(t, b.called(t, "coverage deployments --incomplete", "").out, "forbidden: no right")
}

func TestARecreatedObjectHasTwoLives(t *testing.T) {
	b := story(t) // seq 10 deletes web, and seq 11 creates it again
	log := b.called(t, "log deployment/web -n shop", "").out
	require.Contains(t, log, "uid "+webUID)
	require.Contains(t, log, "uid "+secondUID)
	require.Equal(t, 2, strings.Count(b.called(t, "story deployment/web -n shop", "").out, "Deployment shop/web  uid "))
	blamed := b.called(t, "blame deployment/web -n shop", "").out
	require.Contains(t, blamed, secondUID)
	require.NotContains(t, blamed, webUID)
	require.Contains(t, b.called(t, "blame deployment/web -n shop --at seq:9", "").out, webUID)
	require.Contains(t, b.called(t, "get deployment/web -n shop --at seq:10", "").err, "deleted at 2026-03-10T12:07:00Z, by seq:10")
	require.Contains(t, b.called(t, "get deployment/web -n shop --at seq:10 --last -o yaml", "").out, webUID)
	require.Contains(t, b.called(t, "get deployment/web -n shop --last -o yaml", "").out, secondUID, "the second life goes on")
	require.Contains(t, b.called(t, "diff -n shop --from seq:9 --to seq:11", "").out, "recreated")
}

func TestAMissingOwnerOwnsNothing(t *testing.T) {
	b := story(t)
	got := b.called(t, "log -A --since seq:1 --index owner=99999999-0000-4000-8000-000000000000", "")
	require.Zero(t, got.code)
	require.Contains(t, got.err, "no matching object changed in that time")
	require.Contains(t, b.called(t, "get deployments -A --index owner=99999999-0000-4000-8000-000000000000", "").err, "No resources found")

	b.at("12:30")
	orphan := fmt.Sprintf(`"ownerReferences":[{"apiVersion":"v1","kind":"Ghost","name":"never","uid":%q}],`, "99999999-0000-4000-8000-000000000000")
	b.write(delta.Added, "configmaps", b.object("configmaps", "shop", "orphan", "00000009-0000-4000-8000-000000000000", "kubectl", orphan, `,"data":{"a":"b"}`))
	require.Contains(t, b.called(t, "log -A --since seq:15 --index owner=99999999-0000-4000-8000-000000000000", "").out, "shop/orphan")
	require.Contains(t, b.called(t, "story configmap/orphan -n shop", "").out, "created")
	require.Contains(t, b.called(t, "log configmap/orphan -n shop --owned", "").out, "created")
}

func TestAnObjectInADeletedNamespaceIsReportedAsDeleted(t *testing.T) {
	b := bookOf(t, pgtest.New(t, scenetest.Record))
	pod := strings.TrimSpace(b.called(t, "get pods -n legacy --at seq:700 -o name", "").out)
	require.True(t, strings.HasPrefix(pod, "pod/old-"), pod)
	for call, want := range map[string]string{
		"get " + pod + " -n legacy":   strings.TrimPrefix(pod, "pod/") + `" not found: deleted at 2026-`,
		"get ns/legacy":               `namespaces "legacy" not found: deleted at 2026-`,
		"get pod/never-was -n legacy": `namespaces "legacy" not found: deleted at 2026-`,
		"get pod/never-was -n shop":   `pods "never-was" not found`,
		"get pod/never-was -n never":  `namespaces "never" not found`,
		"get pods -n \x1b[31mlegacy":  `No resources found in \u001b[31mlegacy namespace.`,
	} {
		require.Contains(t, b.called(t, call, "").err, want, call)
	}
	around := b.called(t, "log -n shop --around rv:604 --within 1s -q", "").out
	require.Contains(t, around, "13:18:37", "the instant is the time of the version")
	managers := b.called(t, "log -n shop --since seq:1 --manager !kube*", "").err
	require.Contains(t, managers, `no recent version has --manager "!kube*"`)
	require.True(t, slices.ContainsFunc(strings.Split(managers, "\n"), func(line string) bool { return strings.HasPrefix(line, "Note: no matching object") }))
}
