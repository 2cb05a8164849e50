package postgres

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
)

func containsAny(s string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(s, part) {
			return true
		}
	}
	return false
}

// chained makes a record of some batches, with lives, ends and gaps.
func chained(t *testing.T) *recording {
	r := record(t, newDatabase(t))
	pods := r.pods()
	x, y := made(t, "a", "x", newUID(), "11", `1`), made(t, "a", "y", newUID(), "12", `1`)
	r.commit(replacedBy(pods, delta.CauseFirstList, "10"))
	r.commit(watched(pods, delta.Added, x), watched(pods, delta.Added, y), interruptedBy(pods, "forbidden", "no"))
	r.now = r.now.AddDate(0, 0, 1)
	r.commit(Item{Stream: pods.ID(), Kind: Marked, Marker: delta.Marker{Kind: delta.Resumed}}, watched(pods, delta.Deleted, made(t, "a", "x", string(x.uid), "13", `2`)))
	r.commit(bookmark(pods, "20"))
	r.commit(watched(pods, delta.Updated, made(t, "a", "y", string(y.uid), "21", `2`)))
	return r
}

func TestChainHoldsOverAnUntouchedRecord(t *testing.T) {
	require.Equal(t, ChainReport{FirstBatch: 1, LastBatch: 5, Batches: 5, Deltas: 4, Anchored: true}, chained(t).verify())
}

func TestEachChangeToTheRecordBreaksTheChain(t *testing.T) {
	for damage, batch := range map[string]int64{
		`UPDATE kuberewind.deltas_data SET digest = decode(repeat('00', 16), 'hex') WHERE seq = 2`:        2,
		`UPDATE kuberewind.deltas_data SET manager = 'nobody' WHERE seq = 2`:                              2,
		`UPDATE kuberewind.deltas_data SET manager_evidence = 1 WHERE seq = 2`:                            2,
		`UPDATE kuberewind.deltas_data SET manager_hint = 'nobody' WHERE seq = 3`:                         3,
		`UPDATE kuberewind.deltas_data SET occurred_at = occurred_at - interval '1 second' WHERE seq = 3`: 3,
		`UPDATE kuberewind.deltas_data SET type = 1 WHERE seq = 3`:                                        3,
		`DELETE FROM kuberewind.deltas_data WHERE seq = 2`:                                                2,
		`INSERT INTO kuberewind.deltas_data SELECT * FROM kuberewind.deltas_data WHERE seq = 4`:           5,
		`INSERT INTO kuberewind.deltas_data (cluster, stream, seq, object_id, observed_at, occurred_at, type, source, rv, version, digest) SELECT cluster, stream, 5, object_id, observed_at, occurred_at, type, source, rv, version, digest FROM kuberewind.deltas_data WHERE seq = 4`: 6,
		`UPDATE kuberewind.lives SET name = 'z' WHERE object_id = 2`:                             2,
		`DELETE FROM kuberewind.ends`:                                                            3,
		`INSERT INTO kuberewind.ends VALUES (1, 2, 4)`:                                           5,
		`DELETE FROM kuberewind.gaps_data WHERE gap = 2`:                                         2,
		`UPDATE kuberewind.gaps_data SET outcome = 'equal' WHERE gap = 2`:                        3,
		`UPDATE kuberewind.gaps_data SET to_at = to_at + interval '1 hour' WHERE gap = 1`:        1,
		`DELETE FROM kuberewind.batches WHERE batch = 4`:                                         4,
		`DELETE FROM kuberewind.batches WHERE batch = 5`:                                         5,
		`UPDATE kuberewind.batches SET epoch = 2 WHERE batch = 4`:                                4,
		`UPDATE kuberewind.batches SET digest = decode(repeat('00', 32), 'hex') WHERE batch = 3`: 3,
		`UPDATE kuberewind.heads SET digest = decode(repeat('00', 32), 'hex')`:                   5,
	} {
		t.Run(damage, func(t *testing.T) {
			r := chained(t)
			r.db.exec(t, damage)
			report, err := VerifyChain(t.Context(), r.db.admin, r.cfg.ClusterName)
			require.NoError(t, err)
			require.NotEmpty(t, report.Breaks)
			require.Equal(t, batch, report.Breaks[0].Batch, report.Breaks)
		})
	}
}

func TestRecordWhoseOldestPartitionIsGoneUnsaidIsBroken(t *testing.T) {
	r := chained(t)
	r.db.exec(t, `DROP TABLE kuberewind.deltas_p20260310, kuberewind.batches_p20260310`)
	report, err := VerifyChain(t.Context(), r.db.admin, r.cfg.ClusterName)
	require.NoError(t, err)
	require.Equal(t, []ChainBreak{{Batch: 3, Reason: "it is the oldest on record, and no prune says that batches 1 to 2 were dropped"}}, report.Breaks)
	require.False(t, report.Anchored)
	require.Equal(t, int64(3), report.FirstBatch)
	require.Equal(t, int64(2), report.Batches)
}

func TestEmptyRecordAndUnknownClusterAreTold(t *testing.T) {
	r := record(t, newDatabase(t))
	require.Equal(t, ChainReport{Anchored: true}, r.verify())
	_, err := VerifyChain(t.Context(), r.db.admin, "none")
	require.ErrorIs(t, err, ErrUnknownCluster)
}
