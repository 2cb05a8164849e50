package election

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kuberewind/kuberewind/internal/controlplane"
	"github.com/kuberewind/kuberewind/internal/pgtest"
)

const (
	term    = MinTerm
	cluster = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
)

// join starts a candidate that ends with the test.
func join(t *testing.T, db *pgtest.Database, identity string, change ...func(*Options)) *Election {
	t.Helper()
	o := Options{
		Cluster: cluster, Identity: identity, Term: term, Log: slog.New(slog.DiscardHandler),
		Connect: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, db.URL()) },
	}
	for _, f := range change {
		f(&o)
	}
	e, err := Start(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

// sit makes a session that says nothing of itself.
func sit(t *testing.T, db *pgtest.Database, identity string) *seat {
	t.Helper()
	s := newSeat(Options{Cluster: cluster, Identity: identity, Term: term, Connect: func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, db.URL()) }})
	require.NoError(t, s.join(t.Context()))
	t.Cleanup(s.leave)
	return s
}

// limited bounds what is waited for.
func limited(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func (e *Election) awaitElected(t *testing.T) {
	t.Helper()
	require.NoError(t, e.Await(limited(t), func(context.Context, string) error { return nil }))
}

var errStandsBy = errors.New("stands by")

// awaitStandby gives the leader that it was told.
func (e *Election) awaitStandby(t *testing.T) (leader string) {
	t.Helper()
	require.ErrorIs(t, e.Await(limited(t), func(_ context.Context, l string) error {
		leader = l
		return errStandsBy
	}), errStandsBy)
	return leader
}

func TestOneIsElectedAndTheNextWhenItLeaves(t *testing.T) {
	db := pgtest.New(t, nil)
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

// A transaction that lasts for months must not keep VACUUM from its work.
func TestTheSessionsOfAnElectionHoldNothingUp(t *testing.T) {
	db := pgtest.New(t, nil)
	conn := db.Connect(t)
	_, err := conn.Exec(t.Context(), `ALTER DATABASE `+db.Name()+` SET default_transaction_isolation = 'serializable'`)
	require.NoError(t, err)
	first := join(t, db, "first/1")
	first.awaitElected(t)
	second := join(t, db, "second/2")
	second.awaitStandby(t)
	require.Eventually(t, func() bool {
		var idle, holding int
		require.NoError(t, conn.QueryRow(t.Context(), `
			SELECT count(*) FILTER (WHERE state = 'idle in transaction'), count(backend_xid) + count(backend_xmin) FILTER (WHERE state = 'idle in transaction')
			FROM pg_stat_activity WHERE application_name IN ('kuberewind first/1', 'kuberewind second/2')`).Scan(&idle, &holding))
		return idle == 2 && holding == 0
	}, 2*time.Minute, 10*time.Millisecond)
}

func TestAStandbyKnowsWhoLeadsNow(t *testing.T) {
	db := pgtest.New(t, nil)
	waiting, first, second := sit(t, db, "waiting/1"), sit(t, db, "first/2"), sit(t, db, "second/3")
	require.Empty(t, waiting.holder(t.Context()))
	for _, leader := range []*seat{first, second} {
		// The server notices that a session was left when it comes to it.
		require.Eventually(t, func() bool {
			held, err := leader.sit(t.Context(), true)
			return err == nil && held
		}, time.Minute, 10*time.Millisecond)
		require.Eventually(t, func() bool {
			_, err := waiting.sit(t.Context(), false)
			return err == nil && namePrefix+waiting.holder(t.Context()) == leader.name
		}, time.Minute, 10*time.Millisecond)
		leader.leave()
	}
}

func TestALeaderThatSaysNothingForATermIsReplaced(t *testing.T) {
	db := pgtest.New(t, nil)
	// A stopped process: its connection lives, and nothing comes from it.
	stopped := sit(t, db, "stopped/1")
	held, err := stopped.sit(t.Context(), true)
	require.NoError(t, err)
	require.True(t, held)
	second := join(t, db, "second/2")
	require.Equal(t, "stopped/1", second.awaitStandby(t))
	second.awaitElected(t)
	_, err = stopped.sit(t.Context(), true)
	require.Error(t, err)
}

func TestALeaderThatLostTheDatabaseHasItBackBeforeAStandby(t *testing.T) {
	db := pgtest.New(t, nil)
	first := join(t, db, "first/1")
	first.awaitElected(t)
	second := join(t, db, "second/2")
	second.awaitStandby(t)
	db.RefuseConnections(t)
	db.CutConnections(t)
	db.AllowConnections(t)
	conn := db.Connect(t)
	require.Eventually(t, func() bool {
		leaders, err := sessions(t.Context(), conn, keysOf(cluster).leader)
		require.NoError(t, err)
		require.NotContains(t, leaders, "second/2")
		return len(leaders) == 1
	}, time.Minute, 10*time.Millisecond)
	first.Close()
	second.awaitElected(t)
}

func TestALeaderWhoseSeatAnotherHasAsksTheRecord(t *testing.T) {
	db := pgtest.New(t, nil)
	first := join(t, db, "first/1")
	first.awaitElected(t)
	thief := sit(t, db, "thief/2")
	conn := db.Connect(t)
	require.Eventually(t, func() bool {
		_, err := conn.Exec(t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kuberewind first/1'`)
		require.NoError(t, err)
		held, err := thief.sit(t.Context(), true)
		require.NoError(t, err)
		return held
	}, time.Minute, 10*time.Millisecond)

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

func TestTheLeaseDecidesWhoMayHaveTheSeat(t *testing.T) {
	db := pgtest.New(t, nil)
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

	// Without an API server nobody can have the Lease, and the leader goes on. It has given up the seat.
	require.NoError(t, plane.APIServer.Stop(t.Context()))
	conn := db.Connect(t)
	require.Eventually(t, func() bool {
		leaders, err := sessions(t.Context(), conn, keysOf(cluster).leader)
		require.NoError(t, err)
		return len(leaders) == 0
	}, time.Minute, 10*time.Millisecond)
	require.Empty(t, first.lost)
	require.NoError(t, plane.APIServer.Start(t.Context()))

	// Another that has the Lease gets the seat as well, and the one before hears of it.
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
	}, time.Minute, 10*time.Millisecond)
	require.Equal(t, "second/2", holder)
	err = first.Keep(limited(t), func(context.Context) error { return nil })
	require.ErrorIs(t, err, ErrLost)
	require.ErrorContains(t, err, "default/kuberewind-recorder is held by second/2")
	first.Close()
	second.awaitElected(t)
}
