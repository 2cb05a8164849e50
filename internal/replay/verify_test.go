package replay

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/replay/verify"
)

func TestARecordThatHoldsIsSaidToHold(t *testing.T) {
	b := story(t)
	got := b.replayed(t, "verify")
	require.Zero(t, got.code, got.err)
	require.Equal(t, `record: 15 deltas of 6 lives (4 alive) folded and compared with their digests; 8 patches, 7 keyframes, 4 streams, 1 days, 0 checkpoints of 0 objects
chain: 17 batches with 15 deltas, from the first one on
The record holds.
`, got.out)
}

func TestWhatWasChangedSinceBreaksTheChain(t *testing.T) {
	b := story(t)
	b.damage(`UPDATE kuberewind.batches SET digest = sha256(digest) WHERE batch = 5`)
	got := b.replayed(t, "verify", "-o", "json")
	require.Equal(t, 1, got.code)
	var r verify.Report
	require.NoError(t, json.Unmarshal([]byte(got.out), &r))
	require.False(t, r.Holds)
	require.Equal(t, verify.CheckChain, r.Findings[0].Check)
	require.Contains(t, r.Findings[0].Text, "batch 5: ")
	require.EqualValues(t, 15, r.Checked.Deltas)
}
