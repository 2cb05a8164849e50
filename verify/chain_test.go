package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/verify"
)

// chained returns a record of some batches, with lives, ends and gaps.
func chained(t *testing.T) *booktest.Shop {
	b := booktest.NewShop(t)
	thing := func(kind delta.Type, name, spec string) postgres.Item {
		return b.Delta(kind, delta.SourceWatch, "things", name, "", `,"spec":`+spec)
	}
	b.Commit(b.Listed("things", delta.CauseFirstList, delta.SourceList))
	b.Commit(thing(delta.Added, "x", "1"), thing(delta.Added, "y", "1"), b.Interrupted("things", delta.CauseForbidden))
	b.Now = b.Now.AddDate(0, 0, 1)
	b.Commit(b.Resumed("things"), thing(delta.Deleted, "x", "2"))
	b.Commit(b.Interrupted("pods", delta.CauseForbidden))
	b.Commit(thing(delta.Updated, "y", "2"))
	return b
}

// chain verifies the chain of a Book.
func chain(t *testing.T, b *booktest.Shop) verify.ChainReport {
	t.Helper()
	report, err := verify.Chain(t.Context(), b.DB.Pool(t), "test")
	require.NoError(t, err)
	return report
}

func TestTheChainHoldsOnAnUntouchedRecord(t *testing.T) {
	require.Equal(t, verify.ChainReport{FirstBatch: 1, LastBatch: 5, Batches: 5, Deltas: 4, Anchored: true}, chain(t, chained(t)))
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
			b := chained(t)
			b.DB.Exec(t, damage)
			report, err := verify.Chain(t.Context(), b.DB.Pool(t), "test")
			require.NoError(t, err)
			require.NotEmpty(t, report.Breaks)
			require.Equal(t, batch, report.Breaks[0].Batch, report.Breaks)
		})
	}
}

func TestAMissingOldestPartitionBreaksTheChain(t *testing.T) {
	b := chained(t)
	b.DB.Exec(t, `DROP TABLE kuberewind.deltas_p20260310, kuberewind.batches_p20260310`)
	report, err := verify.Chain(t.Context(), b.DB.Pool(t), "test")
	require.NoError(t, err)
	require.Equal(t, []verify.ChainBreak{{Batch: 3, Reason: "it is the oldest on record, and no prune says that commits 1 to 2 were dropped"}}, report.Breaks)
	require.False(t, report.Anchored)
	require.Equal(t, int64(3), report.FirstBatch)
	require.Equal(t, int64(2), report.Batches)
}

func TestAnEmptyRecordHoldsAndAnUnknownClusterIsAnError(t *testing.T) {
	b := booktest.NewShop(t)
	require.Equal(t, verify.ChainReport{Anchored: true}, chain(t, b))
	_, err := verify.Chain(t.Context(), b.DB.Pool(t), "none")
	require.ErrorIs(t, err, verify.ErrUnknownCluster)
}
