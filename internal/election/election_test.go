package election

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/migrations"
)

const (
	term    = MinTerm
	cluster = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
)

// at returns a Connector for a URL.
func at(url string) Connector {
	return func(ctx context.Context, change func(*pgx.ConnConfig)) (*pgx.Conn, error) {
		config, err := pgx.ParseConfig(url)
		if err != nil {
			return nil, err
		}
		change(config)
		return pgx.ConnectConfig(ctx, config)
	}
}

// join starts an Election that ends with the test.
func join(t *testing.T, db *pgtest.Database, identity string, change ...func(*Options)) *Election {
	t.Helper()
	o := Options{Cluster: cluster, Identity: identity, Term: term, Log: slog.New(slog.DiscardHandler), Connect: at(db.URL())}
	for _, f := range change {
		f(&o)
	}
	e, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// candidate returns a row that only the test looks at.
func candidate(t *testing.T, db *pgtest.Database, identity string, term time.Duration) *row {
	t.Helper()
	r := &row{connect: at(db.URL()), cluster: cluster, holder: identity, token: identity, term: term, pace: time.Second}
	require.NoError(t, r.join(t.Context()))
	t.Cleanup(r.close)
	return r
}

// take looks, and reports whether this candidate then holds the row.
func (r *row) take(t *testing.T) bool {
	t.Helper()
	require.NoError(t, r.look(t.Context(), true))
	return r.held
}

// limited returns a context that bounds a wait.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (e *Election) awaitElected(t *testing.T) {
	t.Helper()
	require.NoError(t, e.Await(limited(t), func(context.Context, string) error { return nil }))
}

var errStandsBy = errors.New("stands by")

// awaitStandby waits until this process stands by, and returns the name of the leader.
func (e *Election) awaitStandby(t *testing.T) (leader string) {
	t.Helper()
	require.ErrorIs(t, e.Await(limited(t), func(_ context.Context, l string) error {
		leader = l
		return errStandsBy
	}), errStandsBy)
	return leader
}

func TestAStandbyIsElectedWhenTheLeaderCloses(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	first := join(t, db, "first/1")
	first.awaitElected(t)
	second := join(t, db, "second/2")
	require.Equal(t, "first/1", second.awaitStandby(t))
	other := join(t, db, "other/3", func(o *Options) { o.Cluster = "another" })
	other.awaitElected(t)

	conn := db.Connect(t)
	standbys, err := Standbys(t.Context(), conn, cluster)
	require.NoError(t, err)
	require.Equal(t, []string{"second/2"}, standbys)

	first.Close()
	second.awaitElected(t)
	standbys, err = Standbys(t.Context(), conn, cluster)
	require.NoError(t, err)
	require.Empty(t, standbys)
}

func TestAStandbyThatEndsIsNoLongerListed(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	join(t, db, "first/1").awaitElected(t)
	second := join(t, db, "second/2")
	second.awaitStandby(t)
	second.Close()
	standbys, err := Standbys(t.Context(), db.Connect(t), cluster)
	require.NoError(t, err)
	require.Empty(t, standbys)
}

func TestBetweenTwoRenewalsThereIsNoTransactionAndNoLock(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	conn := db.Connect(t)
	_, err := conn.Exec(t.Context(), `ALTER DATABASE `+db.Name()+` SET default_transaction_isolation = 'serializable'`)
	require.NoError(t, err)
	first, second := candidate(t, db, "first/1", term), candidate(t, db, "second/2", term)
	for range 5 {
		require.True(t, first.take(t))
		require.False(t, second.take(t))
		require.NoError(t, second.note(t.Context()))
		var busy, locks int
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT (SELECT count(*) FROM pg_stat_activity WHERE pid = ANY ($1) AND (state <> 'idle' OR backend_xid IS NOT NULL OR backend_xmin IS NOT NULL)),
				(SELECT count(*) FROM pg_locks WHERE pid = ANY ($1) OR locktype = 'advisory')`,
			[]uint32{first.conn.PgConn().PID(), second.conn.PgConn().PID()}).Scan(&busy, &locks))
		require.Zero(t, busy)
		require.Zero(t, locks)
	}
	first.close()
	second.close() // The server adds a session to its statistics when the session ends.
	require.Eventually(t, func() bool {
		var updates, hot int
		require.NoError(t, conn.QueryRow(t.Context(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_all_tables WHERE relid = 'kuberewind.leaders'::regclass`).Scan(&updates, &hot))
		return updates == 6 && hot == 6
	}, 5*time.Minute, 10*time.Millisecond)
}

func TestEachLookMayBeOnAnotherConnection(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	first, second := candidate(t, db, "first/1", time.Hour), candidate(t, db, "second/2", time.Hour)
	for range 3 {
		require.True(t, first.take(t))
		require.False(t, second.take(t))
		require.Equal(t, "first/1", second.leader)
		first.conn, second.conn = second.conn, first.conn // as a pooler does
	}
	require.NoError(t, first.look(t.Context(), false))
	require.True(t, second.take(t))
}

func TestAStandbyKnowsWhoLeadsNow(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	waiting := candidate(t, db, "waiting/1", time.Hour)
	require.NoError(t, waiting.look(t.Context(), false))
	require.Empty(t, waiting.leader)
	for _, name := range []string{"first/2", "second/3"} {
		leader := candidate(t, db, name, time.Hour)
		require.True(t, leader.take(t))
		require.NoError(t, waiting.look(t.Context(), false))
		require.Equal(t, name, waiting.leader)
		leader.close()
	}
}

func TestALeaderThatIsSilentForATermIsReplaced(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	stopped := candidate(t, db, "stopped/1", term) // It sends nothing more, and its connection stays open.
	require.True(t, stopped.take(t))
	second := join(t, db, "second/2")
	require.Equal(t, "stopped/1", second.awaitStandby(t))
	second.awaitElected(t)
	require.False(t, stopped.take(t))
	require.Equal(t, "second/2", stopped.leader)
}

// expire makes the term of the leader end now.
func expire(t *testing.T, db *pgtest.Database) {
	t.Helper()
	db.Exec(t, `UPDATE kuberewind.leaders SET renewed_at = clock_timestamp() - 2 * term`)
}

func TestAHolderCanRenewAnExpiredRowUntilAnotherTakesIt(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	first, second := candidate(t, db, "first/1", time.Hour), candidate(t, db, "second/2", time.Hour)
	require.True(t, first.take(t))
	expire(t, db)
	require.False(t, second.take(t), "the leader may have been delayed with the database")
	require.True(t, first.take(t))
	require.False(t, second.take(t))
	expire(t, db)
	require.False(t, second.take(t))
	require.True(t, second.take(t))
	require.False(t, first.take(t))
}

func TestARowFromTheFutureIsTakenAtTheSecondLook(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	gone, next := candidate(t, db, "gone/1", time.Hour), candidate(t, db, "next/2", time.Hour)
	require.True(t, gone.take(t))
	db.Exec(t, `UPDATE kuberewind.leaders SET renewed_at = clock_timestamp() + interval '2 hours'`)
	require.False(t, next.take(t))
	require.True(t, next.take(t))
}

func TestALookFailsSoonIfTheRowIsLocked(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	first := candidate(t, db, "first/1", time.Hour)
	require.True(t, first.take(t))
	tx, err := db.Connect(t).Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `SELECT FROM kuberewind.leaders FOR UPDATE`)
	require.NoError(t, err)
	require.ErrorContains(t, first.look(t.Context(), true), "lock timeout")
	require.NoError(t, tx.Rollback(t.Context()))
	require.True(t, first.take(t))
}

func TestALeaderGoesOnWhenItsRowWasRemoved(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	first := candidate(t, db, "first/1", time.Hour)
	require.True(t, first.take(t))
	db.Exec(t, `DELETE FROM kuberewind.leaders`)
	require.Error(t, first.look(t.Context(), true))
	require.True(t, first.take(t))
}

func TestAnAuditorCanNeitherChangeNorLockTheRow(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	require.True(t, candidate(t, db, "first/1", time.Hour).take(t))
	auditor, err := pgx.Connect(t.Context(), db.Login(t, migrations.AuditorRole))
	require.NoError(t, err)
	defer func() { require.NoError(t, auditor.Close(context.WithoutCancel(t.Context()))) }()
	for _, sql := range []string{
		`UPDATE kuberewind.leaders SET holder = 'me'`, `DELETE FROM kuberewind.leaders`, `TRUNCATE kuberewind.leaders`,
		`INSERT INTO kuberewind.leaders VALUES ('x', 'me', 'me', now(), '1 day')`,
		`SELECT FROM kuberewind.leaders`, `SELECT FROM kuberewind.leaders FOR UPDATE`, `SELECT FROM kuberewind.leaders FOR KEY SHARE`,
		`BEGIN; LOCK TABLE kuberewind.leaders IN ACCESS SHARE MODE`, `BEGIN; LOCK TABLE kuberewind.record_standbys IN SHARE MODE`,
		`SELECT FROM kuberewind.record_standbys FOR UPDATE`, `SELECT FROM kuberewind.recorders FOR UPDATE`, `INSERT INTO kuberewind.standbys VALUES ('x', 'me', now(), '1 day')`,
		`UPDATE kuberewind.standbys SET recorder = 'me'`, `DELETE FROM kuberewind.standbys`,
	} {
		_, err := auditor.Exec(t.Context(), sql)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, sql)
		require.Equal(t, pgerrcode.InsufficientPrivilege, refused.Code, sql)
		_, err = auditor.Exec(t.Context(), `ROLLBACK`)
		require.NoError(t, err)
	}
}

func TestALoginThatIsOnlyAWriterCanLead(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	login := db.Login(t, migrations.WriterRole)
	first := join(t, db, "first/1", func(o *Options) { o.Connect = at(login) })
	first.awaitElected(t)
	second := join(t, db, "second/2", func(o *Options) { o.Connect = at(login) })
	require.Equal(t, "first/1", second.awaitStandby(t))
	first.Close()
	second.awaitElected(t)
}

func TestARestartedRecorderGetsItsRowBackAtOnce(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	file := filepath.Join(t.TempDir(), "leadership", cluster)
	killed, err := openClaim(file, thisMachine())
	require.NoError(t, err)
	leader := candidate(t, db, "killed/1", time.Hour)
	leader.token = killed.token
	require.True(t, leader.take(t))
	leader.drop() // closes the connection and does not release the row

	again := func(o *Options) { o.ClaimFile = file }
	early := join(t, db, "early/2", again)
	require.Equal(t, "killed/1", early.awaitStandby(t), "the former process still has the file")
	killed.close()
	join(t, db, "again/3", again).awaitElected(t)
}

func TestARecorderOnACopyOfTheDataDirectoryStandsBy(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	file, copied := filepath.Join(t.TempDir(), cluster), filepath.Join(t.TempDir(), cluster)
	first := join(t, db, "first/1", func(o *Options) { o.ClaimFile = file })
	first.awaitElected(t)
	claim, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(copied, claim, 0o600))
	second := join(t, db, "second/2", func(o *Options) { o.ClaimFile = copied })
	require.Equal(t, "first/1", second.awaitStandby(t))
	first.Close()
	second.awaitElected(t)
}

func TestAClaimIsValidOnOneMachineOnly(t *testing.T) {
	file := filepath.Join(t.TempDir(), cluster)
	tokenOn := func(machine string) string {
		c, err := openClaim(file, machine)
		require.NoError(t, err)
		defer c.close()
		return c.token
	}
	first := tokenOn("first")
	require.Equal(t, first, tokenOn("first"))
	second := tokenOn("second")
	require.NotEqual(t, first, second, "the disk was cloned, with the inodes of its files")
	require.Equal(t, second, tokenOn("second"))
}

func TestALeaderThatLostTheDatabaseRenewsBeforeAStandbyTakesOver(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	first := join(t, db, "first/1")
	first.awaitElected(t)
	second := join(t, db, "second/2")
	second.awaitStandby(t)
	db.RefuseConnections(t)
	db.CutConnections(t)
	db.AllowConnections(t)
	conn := db.Connect(t)
	for range 4 { // looks of the leader
		before := renewedAt(t, conn)
		require.Eventually(t, func() bool { return renewedAt(t, conn) != before }, 5*time.Minute, 10*time.Millisecond)
	}
	require.Equal(t, "first/1", leaderOf(t, conn))
	first.Close()
	second.awaitElected(t)
}

func renewedAt(t *testing.T, conn *pgx.Conn) (at string) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT renewed_at::text FROM kuberewind.leaders WHERE cluster_uid = $1`, cluster).Scan(&at))
	return at
}

// leaderOf returns the name of the leader, or "" if there is none.
func leaderOf(t *testing.T, conn *pgx.Conn) (name string) {
	t.Helper()
	require.NoError(t, conn.QueryRow(t.Context(), `SELECT CASE WHEN `+expired+` THEN '' ELSE holder END FROM kuberewind.leaders WHERE cluster_uid = $1`, cluster).Scan(&name))
	return name
}

func TestALeaderChecksTheRecordIfAnotherHasItsRow(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	first := join(t, db, "first/1")
	first.awaitElected(t)
	db.Exec(t, `UPDATE kuberewind.leaders SET holder = 'thief/2', token = 'thief', renewed_at = clock_timestamp(), term = '1 hour'`)

	asked := 0
	gone := errors.New("another has taken over")
	require.ErrorIs(t, first.Keep(limited(t), func(context.Context) error {
		if asked++; asked == 1 {
			return nil
		}
		return gone
	}), gone)
	require.Equal(t, 2, asked)
}

func TestOnlyTheHolderOfTheLeaseHasTheRow(t *testing.T) {
	db := pgtest.New(t, pgtest.EmptyRecord)
	plane := controlplane.ForTest(t, controlplane.Options{})
	byLease := func(identity string) func(*Options) {
		return func(o *Options) {
			var err error
			o.Lease, err = NewLease(plane.Config(), "default", "kuberewind-recorder", identity, term)
			require.NoError(t, err)
		}
	}
	first := join(t, db, "first/1", byLease("first/1"))
	first.awaitElected(t)
	second := join(t, db, "second/2", byLease("second/2"))
	require.Equal(t, "first/1", second.awaitStandby(t))
	client, err := kubernetes.NewForConfig(plane.Config())
	require.NoError(t, err)
	leases := client.CoordinationV1().Leases("default")
	lease, err := leases.Get(t.Context(), "kuberewind-recorder", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, "first/1", *lease.Spec.HolderIdentity)

	// Without an API server no process can hold the Lease. The leader goes on, but it releases the row.
	require.NoError(t, plane.APIServer.Stop(t.Context()))
	conn := db.Connect(t)
	require.Eventually(t, func() bool { return leaderOf(t, conn) == "" }, 5*time.Minute, 10*time.Millisecond)
	require.Empty(t, first.lost)
	require.NoError(t, plane.APIServer.Start(t.Context()))

	// If another process gets the Lease, it gets the row as well, and Keep of the former leader returns ErrLost.
	var holder string
	require.Eventually(t, func() bool {
		lease, err = leases.Get(t.Context(), "kuberewind-recorder", metav1.GetOptions{})
		require.NoError(t, err)
		thief := "second/2"
		lease.Spec.HolderIdentity = &thief
		now := metav1.NowMicro()
		lease.Spec.RenewTime = &now
		_, err = leases.Update(t.Context(), lease, metav1.UpdateOptions{})
		holder = *lease.Spec.HolderIdentity
		return err == nil
	}, 5*time.Minute, 10*time.Millisecond)
	require.Equal(t, "second/2", holder)
	err = first.Keep(limited(t), func(context.Context) error { return nil })
	require.ErrorIs(t, err, ErrLost)
	require.ErrorContains(t, err, "default/kuberewind-recorder is held by second/2")
	first.Close()
	second.awaitElected(t)
}
