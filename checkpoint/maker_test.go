package checkpoint_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// cluster is the cluster of a Book.
var cluster = history.Cluster{Number: 1, Name: "test"}

func maker(pool *pgxpool.Pool, o checkpoint.Options) *checkpoint.Maker {
	if o.Busy == 0 {
		o.Busy = 1
	}
	return checkpoint.NewMaker(pool, cluster.Number, history.Of(pool, cluster).Source(), o)
}

// thing returns the delta of a new object.
func thing(b *booktest.Shop, name string) postgres.Item {
	return b.Delta(delta.Added, delta.SourceWatch, "things", name, "", `,"spec":1`)
}

// written returns a record of some objects.
func written(t *testing.T, objects int) *booktest.Shop {
	t.Helper()
	b := booktest.NewShop(t)
	b.List()
	var items []postgres.Item
	for i := range objects {
		items = append(items, thing(b, fmt.Sprintf("o%03d", i)))
	}
	b.Commit(items...)
	return b
}

// seqs returns the seqs of the checkpoints on record, newest first.
func seqs(t *testing.T, b *booktest.Shop) (found []int64) {
	t.Helper()
	infos, err := checkpoint.Store{DB: b.DB.Pool(t), Cluster: cluster.Number}.List(t.Context(), 1000, 1000)
	require.NoError(t, err)
	for _, info := range infos {
		found = append(found, info.Seq)
	}
	return found
}

func TestTheWriterMakesCheckpoints(t *testing.T) {
	b := written(t, 5)
	pool, err := postgres.NewPool(t.Context(), b.DB.Login(t, migrations.WriterRole), checkpoint.Session)
	require.NoError(t, err)
	defer pool.Close()
	m := maker(pool, checkpoint.Options{EveryDeltas: 1})
	info, err := m.MakeOne(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(5), info.Seq)
	require.NoError(t, m.Prune(t.Context()))
	_, err = m.MakeOne(t.Context())
	require.ErrorIs(t, err, checkpoint.ErrNothingNew)
	require.Equal(t, []int64{5}, seqs(t, b))
}

func TestARecordWithoutDeltasHasNoCheckpoint(t *testing.T) {
	b := booktest.NewShop(t)
	m := maker(b.DB.Pool(t), checkpoint.Options{})
	_, err := m.MakeOne(t.Context())
	require.ErrorIs(t, err, history.ErrEmpty)
	require.NoError(t, m.Prune(t.Context()))
}

func TestRunMakesACheckpointWhenItIsDue(t *testing.T) {
	b := written(t, 5)
	m := maker(b.DB.Pool(t), checkpoint.Options{EveryDeltas: 5})
	due, err := m.Due(t.Context())
	require.NoError(t, err)
	require.True(t, due)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	require.Eventually(t, func() bool { return slices.Equal(seqs(t, b), []int64{5}) }, 5*time.Minute, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	due, err = m.Due(t.Context())
	require.NoError(t, err)
	require.False(t, due)
}

func TestACheckpointWaitsWhileASweepRuns(t *testing.T) {
	b := written(t, 1)
	var hold atomic.Bool
	hold.Store(true)
	asked := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	m := maker(b.DB.Pool(t), checkpoint.Options{EveryDeltas: 1, CheckEvery: time.Millisecond, Hold: func() bool {
		select {
		case asked <- struct{}{}:
		case <-ctx.Done():
		}
		return hold.Load()
	}})
	done := make(chan error)
	go func() { done <- m.Run(ctx) }()
	for range 3 {
		<-asked // Hold made it wait twice
	}
	require.Empty(t, seqs(t, b))
	hold.Store(false)
	for len(seqs(t, b)) == 0 {
		select {
		case <-asked:
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	require.NoError(t, <-done)
}

func TestPruneKeepsCheckpointsOfRemainingDays(t *testing.T) {
	b := written(t, 3)
	m := maker(b.DB.Pool(t), checkpoint.Options{})
	var made []int64 // newest first
	for i := range 4 {
		b.Now = b.Now.AddDate(0, 0, 1)
		b.Commit(thing(b, "x"+strconv.Itoa(i)))
		info, err := m.MakeOne(t.Context())
		require.NoError(t, err)
		require.NoError(t, m.Prune(t.Context()))
		made = slices.Insert(made, 0, info.Seq)
	}
	require.Equal(t, made, seqs(t, b))
	b.DB.Exec(t, fmt.Sprintf(`DELETE FROM kuberewind.days WHERE first_seq <= %d`, made[2]))
	require.NoError(t, m.Prune(t.Context()))
	require.Equal(t, made[:2], seqs(t, b))
	var blocks int
	require.NoError(t, b.DB.Pool(t).QueryRow(t.Context(), `SELECT count(DISTINCT checkpoint) FROM kuberewind.checkpoint_blocks`).Scan(&blocks))
	require.Equal(t, 2, blocks)
}

// The recorder's connections end a transaction that is idle for long, but a checkpoint rests within one.
func TestACheckpointMayRestForLong(t *testing.T) {
	b := written(t, 600) // three blocks
	config, err := pgxpool.ParseConfig(b.DB.URL())
	require.NoError(t, err)
	config.ConnConfig.RuntimeParams["idle_in_transaction_session_timeout"] = "1ms"
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	defer pool.Close()
	_, err = maker(pool, checkpoint.Options{Busy: 0.2}).MakeOne(t.Context())
	require.NoError(t, err)
}

// blocked waits until a session waits for a lock.
func blocked(t *testing.T, b *booktest.Shop) {
	t.Helper()
	require.Eventually(t, func() bool {
		var waits bool
		err := b.DB.Pool(t).QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	}, 5*time.Minute, 10*time.Millisecond)
}

func TestTheSecondOfTwoMakersFindsNothingNew(t *testing.T) {
	b := written(t, 5)
	tx, err := b.DB.Pool(t).Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `INSERT INTO kuberewind.checkpoints VALUES (1, 5, now(), now(), 0, 0, 0, '', '{}')`)
	require.NoError(t, err)
	done := make(chan error)
	m := maker(b.DB.Pool(t), checkpoint.Options{})
	go func() {
		_, err := m.MakeOne(t.Context())
		done <- err
	}()
	blocked(t, b)
	require.NoError(t, tx.Commit(t.Context()))
	require.ErrorIs(t, <-done, checkpoint.ErrNothingNew)
}

func TestACheckpointReadsTheRecordAfterAnErasure(t *testing.T) {
	b := written(t, 5)
	tx, err := b.DB.Pool(t).Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `LOCK TABLE kuberewind.checkpoints IN SHARE ROW EXCLUSIVE MODE`) // as an erasure does
	require.NoError(t, err)
	done := make(chan checkpoint.Info)
	m := maker(b.DB.Pool(t), checkpoint.Options{})
	go func() {
		info, err := m.MakeOne(t.Context())
		assert.NoError(t, err)
		done <- info
	}()
	blocked(t, b)
	b.Commit(thing(b, "late"))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, int64(6), (<-done).Seq)
}
