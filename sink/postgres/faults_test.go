package postgres

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
)

// faulty is a recording of one pod, with a hook for each retry.
type faulty struct {
	*recording
	pods *Stream
	uid  string
	rv   int
	want []recorded

	retries []Retry
	onRetry func(Retry)
}

func recordFaulty(t testing.TB, db *database, url string) *faulty {
	t.Helper()
	f := &faulty{uid: newUID(), rv: 10}
	f.recording = record(t, db, func(c *Config) {
		c.URL = url
		c.Hooks.Retrying = func(r Retry) {
			f.retries = append(f.retries, r)
			if f.onRetry != nil {
				f.onRetry(r)
			}
		}
	})
	f.pods = f.recording.pods()
	f.commit(replacedBy(f.pods, delta.CauseFirstList, "10"))
	return f
}

// update makes a batch with the next version of the pod, and remembers the version.
func (f *faulty) update() *Batch {
	f.t.Helper()
	f.rv++
	o := made(f.t, "default", "web", f.uid, fmt.Sprint(f.rv), fmt.Sprintf(`{"n":%d}`, f.rv))
	f.want = append(f.want, recorded{RV: o.rv, Doc: o.doc})
	return f.encode(watched(f.pods, delta.Updated, o))
}

func (f *faulty) mustCommit(b *Batch) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	require.NoError(f.t, f.sink.Commit(ctx, b))
}

// exactlyOnce checks that all versions are on record, each once.
func (f *faulty) exactlyOnce() {
	f.t.Helper()
	history := f.history()
	require.Len(f.t, history, len(f.want))
	for i := range history {
		require.Equal(f.t, f.want[i].RV, history[i].RV)
		require.Equal(f.t, f.want[i].Doc, history[i].Doc)
	}
	f.verify()
}

func TestTheHeadShowsWhetherALostCommitSucceeded(t *testing.T) {
	for _, how := range []cut{cutBefore, cutAfter} {
		t.Run(how.String(), func(t *testing.T) {
			db := newDatabase(t)
			p := newProxy(t, db.url)
			f := recordFaulty(t, db, p.url)
			f.mustCommit(f.update())
			p.cutNextCommit(how)
			f.mustCommit(f.update())
			f.mustCommit(f.update())
			require.Len(t, f.retries, 1)
			require.Equal(t, Connection, f.retries[0].Class)
			f.exactlyOnce()
		})
	}
}

func TestCommitWaitsForATransactionThatALostConnectionKeepsOpen(t *testing.T) {
	for _, late := range []bool{false, true} {
		t.Run(fmt.Sprintf("committed late %v", late), func(t *testing.T) {
			db := newDatabase(t)
			p := newProxy(t, db.url)
			f := recordFaulty(t, db, p.url)
			f.mustCommit(f.update())
			p.cutNextCommit(cutAndHold)
			batch := f.update()
			done := make(chan error, 1)
			go func() { done <- f.sink.Commit(context.Background(), batch) }()
			held := <-p.held
			awaitLockWaiter(t, db)
			require.Empty(t, done)
			if late {
				require.NoError(t, held.commit())
			} else {
				require.NoError(t, held.drop())
			}
			require.NoError(t, <-done)
			f.mustCommit(f.update())
			f.exactlyOnce()
		})
	}
}

// awaitLockWaiter returns when a session waits for the lock of another session.
func awaitLockWaiter(t testing.TB, db *database) {
	t.Helper()
	require.Eventually(t, func() bool {
		return one[bool](t, db, `SELECT EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')`)
	}, 5*time.Minute, 5*time.Millisecond)
}

func TestAWriterThatLostItsEpochWritesNothing(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	f.mustCommit(f.update())
	stale := f.sink
	batch := f.update()
	f.want = f.want[:1]
	f.open()
	defer stale.Close()
	err := stale.Commit(context.Background(), batch)
	require.ErrorIs(t, err, ErrFenced)
	require.Equal(t, Fenced, ClassOf(err))
	require.Empty(t, f.retries)
	require.ErrorIs(t, stale.RecordServer(context.Background(), "/version", []byte(`{}`)), ErrFenced)
	_, err = stale.Stream(context.Background(), StreamSpec{Resource: "nodes"})
	require.ErrorIs(t, err, ErrFenced)
	_, err = stale.Stream(context.Background(), StreamSpec{Resource: "pods"})
	require.ErrorIs(t, err, ErrFenced)

	f.pods = f.recording.pods()
	f.mustCommit(f.update())
	f.exactlyOnce()
}

func TestATransactionOfAFencedWriterWritesNothing(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	f.mustCommit(f.update())
	head := f.sink.encoder.head

	// One zombie has moved the head and stops there; another has only begun its transaction.
	moved, begun := db.Connect(t), db.Connect(t)
	zombie := func(conn *pgx.Conn) int64 {
		tag, err := conn.Exec(t.Context(), `UPDATE kuberewind.heads SET seq = seq + 1, batch = batch + 1 WHERE cluster = $1 AND epoch = $2 AND seq = $3 AND batch = $4`,
			f.cluster(), head.epoch, head.seq, head.batch)
		require.NoError(t, err)
		return tag.RowsAffected()
	}
	for _, conn := range []*pgx.Conn{moved, begun} {
		_, err := conn.Exec(t.Context(), "BEGIN")
		require.NoError(t, err)
	}
	require.Equal(t, int64(1), zombie(moved))

	opened := make(chan error, 1)
	go func() {
		s, err := Open(context.Background(), f.cfg)
		if err == nil {
			f.sink.Close()
			f.sink = s
		}
		opened <- err
	}()
	awaitLockWaiter(t, db)
	require.NoError(t, moved.Close(t.Context()))
	require.NoError(t, <-opened)
	require.Zero(t, zombie(begun))

	f.pods = f.recording.pods()
	f.mustCommit(f.update())
	require.Zero(t, zombie(begun))
	f.exactlyOnce()
}

func TestAnOldBatchOfTheSameEpochWritesNothing(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	batch := f.update()
	f.mustCommit(batch)
	f.mustCommit(f.update())

	conn, err := f.sink.cfg.Pool.Acquire(t.Context())
	require.NoError(t, err)
	defer conn.Release()
	// A lost connection that comes back would send this batch.
	again := *batch
	again.before = head{epoch: 1, seq: 0, batch: 1}
	again.after.epoch = 1
	require.ErrorIs(t, f.sink.committer.write(t.Context(), conn.Conn(), &again), ErrSetBack)
	f.exactlyOnce()
}

// The server is a promoted replica, which did not receive the last commit.
func TestALostCommitEndsTheWriterAndTheNextOneContinues(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	f.mustCommit(f.update())
	before := one[string](t, db, `SELECT format('seq = %s, batch = %s, digest = %L, observed_at = %L', seq, batch, digest, observed_at) FROM kuberewind.heads`)
	f.mustCommit(f.update())
	f.want = f.want[:1]
	db.exec(t, `DELETE FROM kuberewind.deltas_data WHERE seq = (SELECT max(seq) FROM kuberewind.deltas_data)`)
	db.exec(t, `DELETE FROM kuberewind.batches WHERE batch = (SELECT max(batch) FROM kuberewind.batches)`)
	db.exec(t, `UPDATE kuberewind.heads SET `+before)
	err := f.sink.Commit(t.Context(), f.update())
	require.ErrorIs(t, err, ErrSetBack)
	require.NotErrorIs(t, err, ErrFenced, "no other writer has taken over")
	require.Equal(t, Fenced, ClassOf(err))
	require.Empty(t, f.retries)
}

func TestASessionEndedDuringABatchLosesNothing(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	// Another session delays the batch after its head has been moved.
	blocker := db.Connect(t)
	for range 3 {
		tx, err := blocker.Begin(t.Context())
		require.NoError(t, err)
		_, err = tx.Exec(t.Context(), "LOCK TABLE kuberewind.lives, kuberewind.deltas_data IN EXCLUSIVE MODE")
		require.NoError(t, err)
		done := make(chan error, 1)
		batch := f.update()
		go func() { done <- f.sink.Commit(context.Background(), batch) }()
		awaitLockWaiter(t, db)
		db.exec(t, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`)
		require.NoError(t, tx.Rollback(t.Context()))
		require.NoError(t, <-done)
	}
	require.GreaterOrEqual(t, len(f.retries), 3)
	f.exactlyOnce()
}

func TestAServerThatCrashesAndRestartsLosesNothing(t *testing.T) {
	server := pgtest.StartServer(t)
	db := databaseOn(t, server)
	f := recordFaulty(t, db, db.url)
	f.mustCommit(f.update())
	for _, end := range []func(testing.TB){server.Stop, server.Kill} {
		end(t)
		f.onRetry = func(Retry) {
			f.onRetry = nil
			server.Start(t)
		}
		f.mustCommit(f.update())
	}
	require.NotEmpty(t, f.retries)
	f.exactlyOnce()
}

func TestCommitRetriesWhileTheDiskIsFull(t *testing.T) {
	server := pgtest.StartServerOnDisk(t, 160<<20)
	db := databaseOn(t, server)
	f := recordFaulty(t, db, db.url)
	f.mustCommit(f.update())
	server.FillDisk(t)
	f.onRetry = func(r Retry) {
		if r.Class == Resources {
			f.onRetry = nil
			server.FreeDisk(t)
		}
	}
	// This row makes the table grow.
	f.rv++
	o := made(t, "default", "big", newUID(), fmt.Sprint(f.rv), `"`+noise(1<<20)+`"`)
	f.want = append(f.want, recorded{RV: o.rv, Doc: o.doc})
	f.mustCommit(f.encode(watched(f.pods, delta.Added, o)))
	require.Nil(t, f.onRetry, "the disk was full")
	f.exactlyOnce()
}

func TestCommitRetriesWhileTheDatabaseIsReadOnly(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	db.ReadOnly(t)
	f.onRetry = func(r Retry) {
		if r.Class == ReadOnly {
			f.onRetry = nil
			db.ReadWrite(t)
		}
	}
	f.mustCommit(f.update())
	require.Nil(t, f.onRetry, "the database was read-only")
	f.exactlyOnce()
}

func TestCommitRetriesWhileThereAreTooManyConnections(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.Login(t, migrations.WriterRole))
	db.LimitConnections(t, 0)
	db.CutConnections(t)
	f.onRetry = func(r Retry) {
		if r.Class == Resources {
			f.onRetry = nil
			db.LimitConnections(t, -1)
		}
	}
	f.mustCommit(f.update())
	require.Nil(t, f.onRetry, "there were too many connections")
	f.exactlyOnce()
}

func TestCommitRetriesWhileTheDatabaseRefusesConnections(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	db.RefuseConnections(t)
	db.CutConnections(t)
	f.onRetry = func(r Retry) {
		if r.Attempt == 2 {
			db.AllowConnections(t)
		}
	}
	f.mustCommit(f.update())
	require.GreaterOrEqual(t, len(f.retries), 2)
	f.exactlyOnce()
}

func TestAMissingPartitionIsMadeOnDemand(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	f.mustCommit(f.update())
	f.now = f.now.AddDate(0, 0, 40)
	f.sink.committer.partitions.ensured = f.now // so that Commit does not make it ahead
	f.mustCommit(f.update())
	require.Len(t, f.retries, 1)
	require.Equal(t, NoPartition, f.retries[0].Class)
	require.Zero(t, f.retries[0].Wait)
	f.exactlyOnce()
	require.True(t, one[bool](t, db, `SELECT to_regclass('kuberewind.deltas_p20260419') IS NOT NULL`))
}

func TestAMissingPartitionIsMadeOnceTheRoleMayMakeIt(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.Login(t, migrations.WriterRole))
	f.now = f.now.AddDate(0, 0, 40)
	f.sink.committer.partitions.ensured = f.now // so that Commit does not make it ahead
	db.exec(t, `REVOKE EXECUTE ON FUNCTION kuberewind.ensure_day(date) FROM `+migrations.WriterRole)
	f.onRetry = func(r Retry) {
		if r.Attempt <= maxPartitions {
			require.Equal(t, NoPartition, r.Class)
			require.ErrorContains(t, r.Err, "permission denied for function ensure_day")
			require.NotZero(t, r.Wait)
			return
		}
		f.onRetry = nil
		db.exec(t, `GRANT EXECUTE ON FUNCTION kuberewind.ensure_day(date) TO `+migrations.WriterRole)
	}
	f.mustCommit(f.update())
	require.Nil(t, f.onRetry, "the role had no right to make it")
	f.exactlyOnce()
}

func TestPartitionsAreMadeAheadOnceAnHour(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	require.True(t, one[bool](t, db, `SELECT to_regclass('kuberewind.batches_p20260313') IS NOT NULL`))
	require.False(t, one[bool](t, db, `SELECT to_regclass('kuberewind.deltas_p20260314') IS NOT NULL`))
	f.now = f.now.Add(24 * time.Hour)
	f.mustCommit(f.update())
	require.True(t, one[bool](t, db, `SELECT to_regclass('kuberewind.deltas_p20260314') IS NOT NULL`))
	require.Empty(t, f.retries)
}

func TestCommitRetriesIfTheServerDoesNotAnswer(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	f.sink.committer.patience = 300 * time.Millisecond
	blocker := db.Connect(t)
	tx, err := blocker.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), "LOCK TABLE kuberewind.deltas_data IN EXCLUSIVE MODE")
	require.NoError(t, err)
	f.onRetry = func(r Retry) {
		f.onRetry = nil
		require.Equal(t, Connection, r.Class)
		require.NoError(t, tx.Rollback(context.Background()))
		f.sink.committer.patience = time.Minute
	}
	f.mustCommit(f.update())
	f.exactlyOnce()
}

func TestConnectionsLostTogetherAreReplacedTogether(t *testing.T) {
	db := newDatabase(t)
	p := newProxy(t, db.url)
	f := recordFaulty(t, db, p.url)
	var idle []*pgxpool.Conn
	for range 3 {
		conn, err := f.sink.cfg.Pool.Acquire(t.Context())
		require.NoError(t, err)
		idle = append(idle, conn)
	}
	for _, conn := range idle {
		conn.Release()
	}
	p.halfOpen()
	f.sink.committer.patience = time.Second
	f.onRetry = func(Retry) {
		f.onRetry = nil
		f.sink.committer.patience = time.Minute
	}
	f.mustCommit(f.update())
	require.Len(t, f.retries, 1)
	p.resetLost() // closing a connection takes long if the server does not answer
	f.exactlyOnce()
}

func TestConnectionsLostWhileOpeningDoNotBlockThePool(t *testing.T) {
	db := newDatabase(t)
	p := newProxy(t, db.url)
	f := recordFaulty(t, db, p.url)
	hasty, err := NewPool(context.Background(), p.url+"&connect_timeout=1&pool_max_conns=1", "test")
	require.NoError(t, err)
	defer hasty.Close()
	f.sink.committer.pool = hasty
	p.muteNew(true)
	f.sink.committer.patience = 500 * time.Millisecond
	f.onRetry = func(Retry) {
		f.onRetry = nil
		p.muteNew(false)
		f.sink.committer.patience = time.Minute
	}
	f.mustCommit(f.update())
	require.NotEmpty(t, f.retries)
	f.exactlyOnce()
}

func TestCommitRetriesIfConnectingExceedsTheTimeoutOfTheURL(t *testing.T) {
	db := newDatabase(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections and sends nothing
	require.NoError(t, err)
	defer func() { require.NoError(t, silent.Close()) }()
	f := recordFaulty(t, db, db.url)
	pool := f.sink.committer.pool
	away, err := NewPool(context.Background(), "postgres://"+silent.Addr().String()+"/x?connect_timeout=1&sslmode=disable", "test")
	require.NoError(t, err)
	defer away.Close()
	f.sink.committer.pool = away
	f.onRetry = func(r Retry) {
		f.onRetry = nil
		require.Equal(t, Connection, r.Class)
		f.sink.committer.pool = pool
	}
	f.mustCommit(f.update())
	require.Len(t, f.retries, 1)
	f.exactlyOnce()
}

func TestASessionThatTheServerEndsIsATransientError(t *testing.T) {
	for _, code := range []string{"25P03", "25P04", "57014", "57P01", "57P05"} {
		require.Equal(t, Shutdown, ClassOf(&pgconn.PgError{Code: code}), code)
	}
}

func TestCommitEndsWithItsContext(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	db.RefuseConnections(t)
	db.CutConnections(t)
	defer db.AllowConnections(t)
	ctx, cancel := context.WithCancelCause(context.Background())
	f.onRetry = func(Retry) { cancel(context.DeadlineExceeded) }
	err := f.sink.Commit(ctx, f.update())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Equal(t, Cancelled, ClassOf(err))
}

func TestCommitReturnsAnErrorThatARetryWouldNotChange(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	db.exec(t, "ALTER TABLE kuberewind.lives RENAME TO elsewhere")
	err := f.sink.Commit(context.Background(), f.update())
	require.ErrorContains(t, err, `run "recorder migrate"`)
	require.Equal(t, Permanent, ClassOf(err))
	require.Empty(t, f.retries)
}

func TestBatchesOutOfOrderAreRefused(t *testing.T) {
	db := newDatabase(t)
	f := recordFaulty(t, db, db.url)
	first, second := f.update(), f.update()
	require.ErrorIs(t, f.sink.Commit(t.Context(), second), errOutOfOrder)
	f.mustCommit(first)
	f.mustCommit(second)
	f.exactlyOnce()
}
