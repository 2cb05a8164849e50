package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// noted returns the spool offset in the head.
func (f *faulty) noted() Offset {
	f.t.Helper()
	head, o, err := ReadOffset(f.t.Context(), f.db.admin, f.cfg.ClusterUID)
	require.NoError(f.t, err)
	require.Len(f.t, head, 32)
	return o
}

// again returns a batch that has only versions on record.
func (f *faulty) again() *Batch {
	f.t.Helper()
	f.rv--
	f.want = f.want[:len(f.want)-1]
	b := f.update()
	require.True(f.t, b.Empty())
	return b
}

func TestACommitSetsTheSpoolOffsetAndOpenKeepsIt(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	mine, other := Offset{[]byte("mine"), 7}, Offset{[]byte("other"), 3}
	b := f.update()
	b.SetOffset(mine)
	f.mustCommit(b)
	require.Equal(t, mine, f.noted())
	f.reopen()
	f.pods = f.recording.pods()
	require.Equal(t, mine, f.sink.Info().Offset)
	require.Equal(t, mine, f.noted(), "a second host may open the record and die; the offset of the first host's spool stays")
	b = f.update()
	b.SetOffset(other)
	f.mustCommit(b)
	require.Equal(t, other, f.noted())
	f.mustCommit(f.update())
	require.Equal(t, Offset{}, f.noted(), "this recorder has no spool")
	f.exactlyOnce()
}

func TestABatchWithoutRowsMovesTheOffset(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	f.mustCommit(f.update())
	batches := func() int {
		return one[int](t, f.db, `SELECT count(*) FROM kuberewind.batches WHERE cluster = $1`, f.cluster())
	}
	before := batches()
	f.mustCommit(f.again())
	require.Equal(t, Offset{}, f.noted(), "this recorder has no spool")
	for _, next := range []uint64{3, 5, 4} { // the last is a lost attempt of an earlier batch
		b := f.again()
		b.SetOffset(Offset{[]byte("mine"), next})
		f.mustCommit(b)
	}
	require.Equal(t, Offset{[]byte("mine"), 5}, f.noted())
	require.Equal(t, before, batches())
	f.mustCommit(f.update())
	f.exactlyOnce()

	b := f.again()
	b.SetOffset(Offset{[]byte("mine"), 6})
	successor, err := Open(t.Context(), f.cfg)
	require.NoError(t, err)
	defer successor.Close()
	require.ErrorIs(t, f.sink.Commit(t.Context(), b), ErrFenced)
	require.Equal(t, Offset{}, f.noted())
}

func TestTheOffsetIsMovedOnceTheDatabaseIsBack(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	f.mustCommit(f.update())
	b := f.again()
	b.SetOffset(Offset{[]byte("mine"), 5})
	db.RefuseConnections(t)
	db.CutConnections(t)
	f.onRetry = func(Retry) { db.AllowConnections(t) }
	f.mustCommit(b)
	require.NotEmpty(t, f.retries)
	require.Equal(t, Offset{[]byte("mine"), 5}, f.noted())
	f.now = f.now.Add(time.Second)
	f.mustCommit(f.update())
	f.exactlyOnce()
}
