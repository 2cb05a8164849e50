package replay

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/replay/coverage"
)

func TestCoverageSaysWhatIsMissingAndWhy(t *testing.T) {
	b := story(t)
	got := b.replayed(t, "coverage", "--utc", "configmaps,secrets", "--until", "2026-03-10T12:20:30Z")
	require.Zero(t, got.code, got.err)
	require.Equal(t, `Not complete: 1 of 2 resources with gaps; the recorder paused once.

RESOURCE     FROM                       TO                         COMPLETE   WHY
configmaps   2026-03-10T12:00:00.000Z   2026-03-10T12:11:00.000Z   no         expired: too old; a list then showed 0 new, 1 changed, 1 vanished, 0 unchanged
configmaps   2026-03-10T12:11:00.000Z   2026-03-10T12:21:00.000Z   yes
secrets      2026-03-10T12:00:00.000Z   2026-03-10T12:21:00.000Z   yes

Pause from 2026-03-10T12:12:00.000Z to 2026-03-10T12:20:00.000Z, after seq 14: times of what was caught up on are estimates.
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

Pause from 2026-03-10T12:12:00.000Z to 2026-03-10T12:20:00.000Z, after seq 14: times of what was caught up on are estimates.
`, b.replayed(t, "coverage", "--utc", "secrets").out)
	require.Contains(t, b.replayed(t, "coverage", "--utc").out, "resources with gaps; recording stopped at 2026-03-10T12:21:00.000Z")
	require.Contains(t, b.replayed(t, "coverage", "secrets", "-o", "wide").out, "stopped: no recorder has written since")
	require.Zero(t, b.replayed(t, "coverage", "--fail-if-incomplete", "--since", "2026-03-10T12:11:00Z").code)
	require.Zero(t, b.replayed(t, "coverage", "--fail-if-incomplete", "secrets").code)
	require.Equal(t, 1, b.replayed(t, "coverage", "--fail-if-incomplete", "secrets", "--until", "now").code, "the record ends before")
}

func TestCoverageAsJSON(t *testing.T) {
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
