package postgres

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

func TestASuccessorEndsTheTransactionOfAStoppedWriter(t *testing.T) {
	for name, stopped := range map[string]string{
		"between two statements": `SELECT`,
		"in a COPY":              `COPY kuberewind.lives FROM STDIN`,
	} {
		t.Run(name, func(t *testing.T) {
			db := newDatabase(t)
			f := recordFaulty(t, db, db.url)
			f.mustCommit(f.update())
			// This client sends nothing more, but its connection lives.
			conn := db.Connect(t)
			_, err := conn.Exec(t.Context(), "BEGIN")
			require.NoError(t, err)
			_, err = conn.Exec(t.Context(), `UPDATE kuberewind.heads SET seq = seq + 1, batch = batch + 1`)
			require.NoError(t, err)
			conn.PgConn().Frontend().Send(&pgproto3.Query{String: stopped})
			require.NoError(t, conn.PgConn().Frontend().Flush())
			require.Eventually(t, func() bool {
				return one[bool](t, db, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event = 'ClientRead' AND query = $2)`, conn.PgConn().PID(), stopped)
			}, 5*time.Minute, 5*time.Millisecond)

			stale := f.sink
			require.NoError(t, stale.CheckFence(t.Context()))
			f.open()
			defer stale.Close()
			require.ErrorIs(t, stale.CheckFence(t.Context()), ErrFenced)
			require.NoError(t, f.sink.CheckFence(t.Context()))
			f.pods = f.recording.pods()
			f.mustCommit(f.update())
			f.exactlyOnce()
		})
	}
}

func TestASuccessorDoesNotEndAnErasure(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	f.mustCommit(f.update())
	tx, err := db.Connect(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = BeginErasure(t.Context(), tx, f.sink.info.Cluster)
	require.NoError(t, err)
	require.NoError(t, (&takeover{cfg: &f.sink.cfg, pool: f.sink.cfg.Pool}).evict(t.Context()))
	_, err = tx.Exec(t.Context(), "SELECT 1")
	require.NoError(t, err, "its session continues")
}
