package history

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/migrations"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestTheWriterMakesCheckpoints(t *testing.T) {
	b := newBook(t, 1)
	b.scribble(random(t), 5)
	pool, err := postgres.NewPool(t.Context(), b.db.Login(t, migrations.WriterRole), CheckpointSession)
	require.NoError(t, err)
	defer pool.Close()
	c := NewCheckpointer(pool, Cluster{Number: 1, Name: "test"}, CheckpointOptions{EveryDeltas: 1, Busy: 1})
	info, err := c.MakeOne(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(len(b.pages)), info.Seq)
	require.NoError(t, c.Prune(t.Context()))
	_, err = c.MakeOne(t.Context())
	require.ErrorIs(t, err, ErrNothingNew)
}

func TestACheckpointThatIsNotWhatWasWrittenIsNotUsed(t *testing.T) {
	for name, damage := range map[string]string{
		"a block is gone":        `DELETE FROM kuberewind.checkpoint_blocks WHERE block = 1`,
		"a block is another":     `UPDATE kuberewind.checkpoint_blocks SET data = '\x00' WHERE block = 1`,
		"a digest is another":    `UPDATE kuberewind.checkpoint_blocks SET digest = sha256('') WHERE block = 1`,
		"the directory is gone":  `DELETE FROM kuberewind.checkpoint_blocks WHERE block = 0`,
		"it counts otherwise":    `UPDATE kuberewind.checkpoints SET objects = objects + 1`,
		"it is another's digest": `UPDATE kuberewind.checkpoints SET digest = sha256('')`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t, 1)
			b.scribble(random(t), 10)
			_, err := b.checkpointer(t, CheckpointOptions{}).MakeOne(t.Context())
			require.NoError(t, err)
			b.db.Exec(t, damage)
			r := b.record(t)
			seq := int64(len(b.pages))
			got, stats := rebuilt(t, r, resolved(t, r, AtSeq(seq), Scope{}), Scope{}, RebuildOptions{})
			require.Equal(t, b.liveAt(bySeq(seq)), got)
			require.Zero(t, stats.Checkpoint)
			require.Equal(t, []NoteKind{NoteCheckpoint}, kinds(stats.Notes))
		})
	}
}

func TestCheckpointsAreMadeWhenTheyAreDue(t *testing.T) {
	b := newBook(t, 1)
	b.scribble(random(t), 10)
	c := b.checkpointer(t, CheckpointOptions{EveryDeltas: int64(len(b.pages))})
	due, err := c.Due(t.Context())
	require.NoError(t, err)
	require.True(t, due)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- c.Run(ctx) }()
	r := b.record(t)
	require.Eventually(t, func() bool {
		infos, err := r.Checkpoints(t.Context())
		return err == nil && len(infos) == 1 && infos[0].Seq == int64(len(b.pages))
	}, 5*time.Minute, 10*time.Millisecond)
	cancel()
	require.NoError(t, <-done)
	due, err = c.Due(t.Context())
	require.NoError(t, err)
	require.False(t, due)
}

func TestCheckpointsAreKeptAsLongAsTheRecordGoesBack(t *testing.T) {
	b := newBook(t, 1)
	rnd := random(t)
	c := b.checkpointer(t, CheckpointOptions{})
	var made []int64 // newest first
	for range 4 {
		b.scribble(rnd, 5)
		b.now = b.now.AddDate(0, 0, 1)
		b.commit(b.set(0, "a", "x", strconv.Itoa(len(made))))
		info, err := c.MakeOne(t.Context())
		require.NoError(t, err)
		require.NoError(t, c.Prune(t.Context()))
		made = slices.Insert(made, 0, info.Seq)
	}
	kept := func() (seqs []int64) {
		infos, err := b.record(t).Checkpoints(t.Context())
		require.NoError(t, err)
		for _, info := range infos {
			seqs = append(seqs, info.Seq)
		}
		return seqs
	}
	require.Equal(t, made, kept())
	b.db.Exec(t, fmt.Sprintf(`DELETE FROM kuberewind.days WHERE first_seq <= %d`, made[2]))
	require.NoError(t, c.Prune(t.Context()))
	require.Equal(t, made[:2], kept())
	var blocks int
	require.NoError(t, b.db.Pool(t).QueryRow(t.Context(), `SELECT count(DISTINCT checkpoint) FROM kuberewind.checkpoint_blocks`).Scan(&blocks))
	require.Equal(t, 2, blocks)
}

func TestACheckpointWhoseTailWasDroppedInPartIsNotUsed(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", "1"), b.set(0, "a", "gone", "1"))
	_, err := b.checkpointer(t, CheckpointOptions{}).MakeOne(t.Context())
	require.NoError(t, err)
	b.commit(b.remove(0, "a", "gone"))
	b.now = b.now.AddDate(0, 0, 1)
	b.commit(b.set(0, "a", "x", "2"))
	want := b.liveAt(bySeq(4))
	b.db.Exec(t, `DELETE FROM kuberewind.deltas_data WHERE seq < 4`)
	b.db.Exec(t, `DELETE FROM kuberewind.days WHERE first_seq < 4`)
	r := b.record(t)
	got, stats := rebuilt(t, r, resolved(t, r, Now(), Scope{}), Scope{}, RebuildOptions{})
	require.Equal(t, want, got)
	require.Zero(t, stats.Checkpoint)
}

// blocked waits until a session waits for a lock.
func (b *book) blocked(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool {
		var waits bool
		err := b.db.Pool(t).QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`).Scan(&waits)
		return err == nil && waits
	}, 5*time.Minute, 10*time.Millisecond)
}

func TestOfTwoThatMakeOneCheckpointTheLaterHasNothingToDo(t *testing.T) {
	b := newBook(t, 1)
	b.scribble(random(t), 5)
	tx, err := b.db.Pool(t).Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `INSERT INTO kuberewind.checkpoints VALUES (1, $1, now(), now(), 0, 0, 0, '', '{}')`, len(b.pages))
	require.NoError(t, err)
	done := make(chan error)
	go func() {
		_, err := b.checkpointer(t, CheckpointOptions{}).MakeOne(t.Context())
		done <- err
	}()
	b.blocked(t)
	require.NoError(t, tx.Commit(t.Context()))
	require.ErrorIs(t, <-done, ErrNothingNew)
}

func TestACheckpointSeesTheRecordOnlyWhenAnErasureIsOver(t *testing.T) {
	b := newBook(t, 1)
	b.scribble(random(t), 5)
	tx, err := b.db.Pool(t).Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `LOCK TABLE kuberewind.checkpoints IN SHARE ROW EXCLUSIVE MODE`) // as an erasure does
	require.NoError(t, err)
	done := make(chan checkpoint.Info)
	go func() {
		info, err := b.checkpointer(t, CheckpointOptions{}).MakeOne(t.Context())
		assert.NoError(t, err)
		done <- info
	}()
	b.blocked(t)
	b.commit(b.set(0, "a", "late", "1"))
	require.NoError(t, tx.Rollback(t.Context()))
	require.Equal(t, int64(len(b.pages)), (<-done).Seq)
}
