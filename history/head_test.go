package history

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/migrations"
)

func TestAParsedHeadEqualsTheFormattedHead(t *testing.T) {
	want := Head{Batch: 1102, Digest: [32]byte{0x5d, 31: 0xff}}
	got, err := ParseHead(want.String())
	require.NoError(t, err)
	require.Equal(t, want, got)
	digits := strings.Repeat("ab", 32)
	for _, text := range []string{"", ":", "5", digits, "0:" + digits, "-1:" + digits, "x:" + digits, "5:" + digits[:62], "5:" + digits + "00", "5:" + digits[:63] + "g",
		"99999999999999999999:" + digits, "5:" + digits + ":6"} {
		_, err := ParseHead(text)
		require.ErrorIs(t, err, ErrHead, text)
	}
}

func TestAnAuditorComparesAKeptHead(t *testing.T) {
	b := newBook(t, 1)
	r, err := Open(t.Context(), b.DB.Login(t, migrations.AuditorRole), Options{})
	require.NoError(t, err)
	defer r.Close()
	var heads []Head // two commits on each of three days
	for i := range 6 {
		b.commit(b.set(0, "a", "x", strconv.Itoa(i)))
		head, err := r.Commits().Head(t.Context())
		require.NoError(t, err)
		heads = append(heads, head)
		if i%2 == 1 {
			b.Now = b.Now.AddDate(0, 0, 1)
		}
	}
	compare := func(kept Head) HeadComparison {
		t.Helper()
		c, err := r.Commits().CompareHead(t.Context(), kept)
		require.NoError(t, err)
		require.Equal(t, heads[5].Batch, c.Newest)
		return c
	}
	for _, head := range heads {
		require.Equal(t, HeadEqual, compare(head).Outcome)
	}
	require.Equal(t, HeadDifferent, compare(Head{Batch: heads[2].Batch, Digest: heads[3].Digest}).Outcome)
	beyond := compare(Head{Batch: heads[5].Batch + 1, Digest: heads[5].Digest})
	require.Equal(t, HeadDifferent, beyond.Outcome)
	require.Nil(t, beyond.Found)
	require.Zero(t, beyond.Day)

	b.DB.Exec(t, `DROP TABLE kuberewind.batches_p20260310`)
	require.Equal(t, HeadDifferent, compare(heads[1]).Outcome, "no prune says that it was dropped")
	b.DB.Exec(t, `INSERT INTO kuberewind.prunes_data (cluster, day, first_seq, last_seq, last_batch, batch_digest, bytes, pruned_at, pruned_by, reason)
		VALUES (1, '2026-03-10', 1, 2, `+strconv.FormatInt(heads[1].Batch, 10)+`, decode('`+strings.Split(heads[1].String(), ":")[1]+`', 'hex'), 1, now(), 'x', 'y')`)
	pruned := compare(heads[0])
	require.Equal(t, HeadPruned, pruned.Outcome)
	require.Equal(t, "2026-03-10", pruned.Day.Format("2006-01-02"))
	last := compare(heads[1])
	require.Equal(t, HeadEqual, last.Outcome)
	require.True(t, last.FromPrune)
	require.Equal(t, HeadDifferent, compare(Head{Batch: heads[1].Batch, Digest: heads[0].Digest}).Outcome)
	require.Equal(t, HeadEqual, compare(heads[2]).Outcome)
}
