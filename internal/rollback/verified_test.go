package rollback

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestVerifiedIsTheTimeOfTheLastProbeThatHadAllAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		one, other := &archive{now: 100}, &archive{now: 9000}
		a, _ := followed(all, "configmaps", one, 10)
		b, _ := followed(all, "routes", other, 8000)
		require.Zero(t, all.Verified(), "nothing was served, and nothing is to be said")
		one.serves(a, servedAs("x", "1", 20), true)
		require.Zero(t, all.Verified())
		require.NoError(t, all.Probe(t.Context()))
		first := time.Now().Add(-settledAfter)
		require.Equal(t, first, all.Verified(), "an etcd of which nothing was served holds nobody up")

		time.Sleep(time.Minute)
		other.serves(b, servedAs("y", "2", 8001), true)
		other.fails = errDown
		require.Error(t, all.Probe(t.Context()))
		require.Equal(t, first, all.Verified(), "of one etcd it is not known since")
		other.fails = nil
		time.Sleep(time.Minute)
		require.NoError(t, all.Probe(t.Context()))
		require.Equal(t, time.Now().Add(-settledAfter), all.Verified())

		second := all.Verified()
		one.fails = errDown
		time.Sleep(time.Minute)
		require.Error(t, all.Probe(t.Context()))
		require.Equal(t, second, all.Verified(), "what the one etcd has is not known since")
		for range mostRefused - 1 {
			require.Equal(t, second, all.Verified())
			require.Error(t, all.Probe(t.Context()))
		}
		require.Equal(t, time.Now().Add(-settledAfter), all.Verified(), "it will not be known any more")

		time.Sleep(time.Minute)
		require.Error(t, all.Probe(t.Context()))
		a.Follow(nil)
		require.Equal(t, time.Now().Add(-settledAfter), all.Verified(), "nobody can be asked for that one any more")
	})
}

func TestAVersionThatASuccessorHasNotSeenInEtcdKeepsTheTimeWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		verified := time.Now().Add(-time.Hour)
		all := New(Options{Verified: verified})
		etcd := &archive{now: 100, versions: []*kube.Object{servedAs("x", "1", 20)}}
		c, told := followed(all, "configmaps", etcd, 50)
		c.Recall(Recalled{Position: "50", Unverified: []postgres.Version{{Namespace: "ns", Name: "lost", UID: "2", ResourceVersion: "40", Observed: verified.Add(time.Minute)}}})
		require.Zero(t, all.Verified())
		require.NoError(t, all.Probe(t.Context()))
		require.Len(t, *told, 1)
		require.Zero(t, all.Verified())
		require.Equal(t, verified, c.GapBegin().Time, "its gap begins where its forerunners have looked")
	})
}

func TestTheNewestVersionIsLookedAtEachSecondOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 100}
		c, told := followed(all, "configmaps", etcd, 10)
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
		require.Len(t, *told, 1, "a probe finds out why")
	})
}
