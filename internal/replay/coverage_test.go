package replay

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/replay/coverage"
)

func TestCoverageShowsMissingRangesAndTheirCause(t *testing.T) {
	b := story(t)
	got := b.replayed(t, "coverage", "--utc", "configmaps,secrets", "--until", "2026-03-10T12:20:30Z")
	require.Zero(t, got.code, got.err)
	require.Equal(t, `Not complete: 1 of 2 resources with gaps; the recorder paused once.

RESOURCE     FROM                       TO                         COMPLETE   WHY
configmaps   2026-03-10T12:00:00.000Z   2026-03-10T12:11:00.000Z   no         expired: too old; a list then showed 0 new, 1 changed, 1 vanished, 0 unchanged
configmaps   2026-03-10T12:11:00.000Z   2026-03-10T12:21:00.000Z   yes
secrets      2026-03-10T12:00:00.000Z   2026-03-10T12:21:00.000Z   yes

Pause from 2026-03-10T12:12:00.000Z to 2026-03-10T12:20:00.000Z, after seq 14: the recorder caught up afterwards, and these times are estimates.
`, got.out)
	require.Equal(t, `Not complete: 1 of 2 resources with gaps.

RESOURCE     FROM                       TO                         COMPLETE   WHY
configmaps   2026-03-10T12:00:00.000Z   2026-03-10T12:11:00.000Z   no         expired: too old; a list then showed 0 new, 1 changed, 1 vanished, 0 unchanged
`, b.replayed(t, "coverage", "--utc", "configmaps,secrets", "--incomplete", "--until", "2026-03-10T12:11:30Z").out)
	require.Equal(t, "Complete: 1 resource, each from its first list on.\n", b.replayed(t, "coverage", "secrets", "--incomplete", "--until", "2026-03-10T12:11:30Z").out)
	require.Equal(t, 1, b.replayed(t, "coverage", "--fail-if-incomplete").code)
	require.Equal(t, `Complete until 2026-03-10T12:21:00.000Z, when recording stopped: 1 resource, each from its first list on; the recorder paused once.

RESOURCE   FROM                       TO                         COMPLETE   WHY
secrets    2026-03-10T12:00:00.000Z   2026-03-10T12:21:00.000Z   yes

Pause from 2026-03-10T12:12:00.000Z to 2026-03-10T12:20:00.000Z, after seq 14: the recorder caught up afterwards, and these times are estimates.
`, b.replayed(t, "coverage", "--utc", "secrets").out)
	require.Contains(t, b.replayed(t, "coverage", "--utc").out, "resources with gaps; recording stopped at 2026-03-10T12:21:00.000Z")
	require.Contains(t, b.replayed(t, "coverage", "secrets", "-o", "wide").out, "stopped: no recorder has written since")
	require.Zero(t, b.replayed(t, "coverage", "--fail-if-incomplete", "--since", "2026-03-10T12:11:00Z").code)
	require.Zero(t, b.replayed(t, "coverage", "--fail-if-incomplete", "secrets").code)
	require.Equal(t, 1, b.replayed(t, "coverage", "--fail-if-incomplete", "secrets", "--until", "now").code, "the record ends before now")
}

func TestCoverageInJSONHasTheSameNumbersAsTheTable(t *testing.T) {
	b := story(t)
	got := b.replayed(t, "coverage", "-o", "json")
	var r coverage.Report
	require.NoError(t, json.Unmarshal([]byte(got.out), &r))
	require.False(t, r.Complete)
	require.Len(t, r.Resources, 4)
	require.Equal(t, "configmaps", r.Resources[0].Resource)
	require.False(t, r.Resources[0].Complete)
	var gap *coverage.Stretch
	for i, s := range r.Resources[0].Stretches {
		if s.Cause == "expired" {
			gap = &r.Resources[0].Stretches[i]
		}
	}
	require.NotNil(t, gap)
	require.Equal(t, []int64{0, 1, 1}, []int64{gap.Appeared, gap.Changed, gap.Vanished})
	require.Len(t, r.Pauses, 1)

	got = b.replayed(t, "coverage", "--incomplete", "-o", "json")
	var holes coverage.Report
	require.NoError(t, json.Unmarshal([]byte(got.out), &holes))
	require.False(t, holes.Complete)
	for _, c := range holes.Resources {
		require.NotEmpty(t, c.Stretches, c.Resource)
	}
	require.Less(t, len(holes.Resources), len(r.Resources))
}

func TestAGapThatARollbackEndsNamesNoList(t *testing.T) {
	b := newBook(t)
	b.listed("configmaps", delta.CauseFirstList, delta.SourceList, delta.Marker{})
	b.at("12:01")
	b.interrupted("configmaps", delta.CauseUnreachable, "connection refused")
	b.at("12:02")
	b.interrupted("configmaps", delta.CauseHistoryReversed, "etcd is younger")
	b.at("12:03")
	b.listed("configmaps", delta.CauseHistoryReversed, delta.SourceRelist, delta.Marker{Vanished: 1})
	b.at("12:04")
	b.write(delta.Added, "configmaps", b.object("configmaps", "shop", "settings", settingsUID, "kubectl", "", `,"data":{}`))
	require.Contains(t, b.replayed(t, "coverage", "configmaps").out, "unreachable: connection refused\n")
	got := b.replayed(t, "log", "configmaps", "-n", "shop", "--since", "2026-03-10T12:00:30Z")
	require.Contains(t, got.out, "unreachable (connection refused)\n")
	require.Contains(t, got.out, "a list then showed 0 new, 0 changed, 1 vanished, 0 unchanged")
}

func TestCoverageExplainsWhyATypeIsNotRecorded(t *testing.T) {
	h := newHarbour(t)
	require.NoError(t, h.Sink.RecordServer(t.Context(), "/api", []byte(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
		{"metadata":{"name":""},"versions":[{"version":"v1","resources":[
			{"resource":"bindings","singularResource":"binding","responseKind":{"kind":"Binding"},"scope":"Namespaced","verbs":["create"]},
			{"resource":"pods","singularResource":"pod","responseKind":{"kind":"Pod"},"scope":"Namespaced","verbs":["list","watch"]},
			{"resource":"services","singularResource":"service","responseKind":{"kind":"Service"},"scope":"Namespaced","verbs":["list","watch"]}]}]}]}`)))
	got := h.replayed(t, "coverage", "services")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "Not recorded: services. The recorder never saw it, though the server offered it.\n", got.out)
	require.Equal(t, 1, h.replayed(t, "coverage", "service", "--fail-if-incomplete").code)

	h.DB.Exec(t, `UPDATE kuberewind.epochs SET config = jsonb_set(config::jsonb, '{exclude}', '["services"]')`)
	got = h.replayed(t, "coverage", "services,pods")
	require.Zero(t, got.code, got.err)
	require.Regexp(t, `^Complete until \S+, when recording stopped: 1 resource, each from its first list on\. Not recorded: services\. The recorder's settings exclude it: .*services.*\.\n`, got.out)
	require.Contains(t, h.replayed(t, "coverage", "services", "--incomplete").out, "Not recorded: services. The recorder's settings exclude it")
	require.Equal(t, 1, h.replayed(t, "coverage", "services,pods", "--fail-if-incomplete").code)
	require.Contains(t, h.replayed(t, "coverage", "services", "-o", "json").out, `"complete": false`)
	require.Contains(t, h.replayed(t, "get", "services").err, "see replay coverage services")

	for word, want := range map[string]string{"gadgets": `doesn't have a resource type "gadgets"`, "bindings": "the server served bindings, but does not support list and watch for them"} {
		got = h.replayed(t, "coverage", word)
		require.Equal(t, 1, got.code)
		require.Contains(t, got.err, want)
	}
}

func TestTheVerdictOfCoverageIsColoured(t *testing.T) {
	b := story(t)
	require.Contains(t, b.replayed(t, "coverage", "--color", "always").out, "\x1b[31mNot complete: 1 of 4 resources with gaps")
	require.Contains(t, b.replayed(t, "coverage", "secrets", "--color", "always").out, "\x1b[32mComplete")
	require.Equal(t, 1, strings.Count(b.replayed(t, "coverage", "--color", "always").out, "   \x1b[31mno\x1b[0m         expired: too old"))
	require.NotContains(t, b.replayed(t, "coverage").out, "\x1b")
}
