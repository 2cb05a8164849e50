package rollback

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// announced has all streams been opened.
func withAllAdded(all *Streams) *Streams {
	opened := make(chan struct{})
	close(opened)
	all.WhenAllAdded(opened)
	return all
}

func TestVerifiedIsUpToWhereNothingWaitsForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := withAllAdded(New(Options{}))
		verified := func() time.Time { return all.Verified(time.Now()) }
		one, other := &archive{now: 100}, &archive{now: 9000}
		a, _ := followed(all, "configmaps", one, 10)
		b, _ := followed(all, "routes", other, 8000)
		require.Equal(t, time.Now(), verified(), "nothing was served that could be lost")
		one.serves(a, servedAs("x", "1", 20), true)
		require.Zero(t, verified())
		require.NoError(t, all.Probe(t.Context()))
		first := time.Now().Add(-settledAfter)
		require.Equal(t, first, verified(), "an etcd of which nothing was served holds nobody up")

		time.Sleep(time.Minute)
		other.serves(b, servedAs("y", "2", 8001), true)
		other.fails = errDown
		require.Error(t, all.Probe(t.Context()))
		require.Equal(t, first, verified(), "of one etcd it is not known since")
		other.fails = nil
		time.Sleep(time.Minute)
		require.NoError(t, all.Probe(t.Context()))
		second := time.Now().Add(-settledAfter)
		require.Equal(t, second, verified())
		require.Equal(t, second.Add(-time.Minute), all.Verified(second.Add(-time.Minute)), "not beyond what goes on record with it")

		one.fails = errDown
		for range maxPending/time.Minute - 1 {
			time.Sleep(time.Minute)
			require.Error(t, all.Probe(t.Context()))
			require.Equal(t, second, verified(), "what the one etcd has is not known since")
		}
		time.Sleep(2 * time.Minute)
		require.Equal(t, time.Now().Add(-maxPending), verified(), "it will not be known any more")
		a.Follow(nil)
		require.NoError(t, all.Probe(t.Context()))
		require.Equal(t, time.Now().Add(-settledAfter), verified(), "nobody can be asked for that one")
	})
}

func TestAVersionOfTheRecordersBeforeKeepsTheTimeWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := time.Now().Add(-time.Hour)
		all := New(Options{Verified: before})
		etcd := &archive{now: 100, versions: []*kube.Object{servedAs("x", "1", 20)}}
		c, notified := followed(all, "configmaps", etcd, 50)
		waits := postgres.Version{Namespace: "ns", Name: "lost", UID: "2", ResourceVersion: "40", Observed: before.Add(time.Minute)}
		c.Recall(Recalled{Position: "50", Unverified: []postgres.Version{waits}})
		require.Zero(t, all.Verified(time.Now()), "others on record are not followed yet")
		withAllAdded(all)
		require.Equal(t, waits.Observed, all.Verified(time.Now()))
		require.NoError(t, all.Probe(t.Context()))
		require.Len(t, *notified, 1)
		require.Zero(t, all.Verified(time.Now()))
		require.Equal(t, before, c.GapBegin().Time, "its gap begins where those have looked")
	})
}

func TestNothingIsVerifiedBeforeTheGapsOfARollbackAreOnRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := withAllAdded(New(Options{}))
		etcd := &archive{now: 100}
		c, _ := followed(all, "configmaps", etcd, 10)
		etcd.serves(c, servedAs("lost", "1", 20), false)
		require.NoError(t, all.Probe(t.Context()))
		rolledBack := time.Now()
		time.Sleep(time.Minute)
		require.Zero(t, all.Verified(time.Now()))
		c.Listing("history_reversed")
		c.Listed("100")
		c.Reached("100")
		listed := time.Now()
		time.Sleep(time.Minute)
		require.NoError(t, all.Probe(t.Context()))
		require.Zero(t, all.Verified(rolledBack), "what goes on record was observed before")
		require.Zero(t, all.Verified(listed))
		require.Equal(t, time.Now().Add(-settledAfter), all.Verified(time.Now()))
	})
}

func TestTheNewestVersionIsLookedAtEachSecondOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 100}
		c, notified := followed(all, "configmaps", etcd, 10)
		etcd.serves(c, servedAs("x", "1", 20), true)
		asked := func() int64 {
			before := etcd.asked.Load()
			require.NoError(t, all.glance(t.Context()))
			return etcd.asked.Load() - before
		}
		require.EqualValues(t, 1, asked())
		require.Zero(t, asked(), "nothing was served since")
		etcd.serves(c, servedAs("y", "2", 30), true)
		require.EqualValues(t, 1, asked())
		etcd.serves(c, servedAs("lost", "3", 40), false)
		require.NoError(t, all.glance(t.Context()))
		require.Len(t, *notified, 1, "a probe finds out why")
	})
}
