package history

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/checkpoint"
)

func TestADamagedCheckpointIsNotUsed(t *testing.T) {
	for name, damage := range map[string]string{
		"a block is gone":            `DELETE FROM kuberewind.checkpoint_blocks WHERE block = 1`,
		"a block has other data":     `UPDATE kuberewind.checkpoint_blocks SET data = '\x00' WHERE block = 1`,
		"a block has another digest": `UPDATE kuberewind.checkpoint_blocks SET digest = sha256('') WHERE block = 1`,
		"the directory is gone":      `DELETE FROM kuberewind.checkpoint_blocks WHERE block = 0`,
		"another number of objects":  `UPDATE kuberewind.checkpoints SET objects = objects + 1`,
		"another digest":             `UPDATE kuberewind.checkpoints SET digest = sha256('')`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBook(t, 1)
			b.scribble(random(t), 10)
			_, err := b.checkpointer(t, checkpoint.Options{}).MakeOne(t.Context())
			require.NoError(t, err)
			b.DB.Exec(t, damage)
			r := b.record(t)
			seq := int64(len(b.pages))
			got, stats := rebuilt(t, r, resolved(t, r, AtSeq(seq), Scope{}), Scope{}, RebuildOptions{})
			require.Equal(t, b.liveAt(bySeq(seq)), got)
			require.Zero(t, stats.Checkpoint)
			require.Equal(t, []NoteKind{NoteCheckpoint}, kinds(stats.Notes))
		})
	}
}

func TestACheckpointWithAPartlyDroppedTailIsNotUsed(t *testing.T) {
	b := newBook(t, 1)
	b.commit(b.set(0, "a", "x", "1"), b.set(0, "a", "gone", "1"))
	_, err := b.checkpointer(t, checkpoint.Options{}).MakeOne(t.Context())
	require.NoError(t, err)
	b.commit(b.remove(0, "a", "gone"))
	b.Now = b.Now.AddDate(0, 0, 1)
	b.commit(b.set(0, "a", "x", "2"))
	want := b.liveAt(bySeq(4))
	b.DB.Exec(t, `DELETE FROM kuberewind.deltas_data WHERE seq < 4`)
	b.DB.Exec(t, `DELETE FROM kuberewind.days WHERE first_seq < 4`)
	r := b.record(t)
	got, stats := rebuilt(t, r, resolved(t, r, Now(), Scope{}), Scope{}, RebuildOptions{})
	require.Equal(t, want, got)
	require.Zero(t, stats.Checkpoint)
}
