package rollback

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// withAllAdded says that all streams are added.
func withAllAdded(all *Streams) *Streams {
	opened := make(chan struct{})
	close(opened)
	all.WhenAllAdded(opened)
	return all
}

func TestVerifiedEndsAtTheFirstPendingVersion(t *testing.T) {
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
		require.Equal(t, first, verified(), "an etcd without a served version does not keep it back")

		time.Sleep(time.Minute)
		other.serves(b, servedAs("y", "2", 8001), true)
		other.fails = errDown
		require.Error(t, all.Probe(t.Context()))
		require.Equal(t, first, verified(), "one etcd has not answered since")
		other.fails = nil
		time.Sleep(time.Minute)
		require.NoError(t, all.Probe(t.Context()))
		second := time.Now().Add(-settledAfter)
		require.Equal(t, second, verified())
		require.Equal(t, second.Add(-time.Minute), all.Verified(second.Add(-time.Minute)), "not beyond the entry with which it is recorded")

		one.fails = errDown
		for range maxPending/time.Minute - 1 {
			time.Sleep(time.Minute)
			require.Error(t, all.Probe(t.Context()))
			require.Equal(t, second, verified(), "the other etcd has not answered since")
		}
		time.Sleep(2 * time.Minute)
		require.Equal(t, time.Now().Add(-maxPending), verified(), "that etcd will not say it any more")
		a.Follow(nil)
		require.NoError(t, all.Probe(t.Context()))
		require.Equal(t, time.Now().Add(-settledAfter), verified(), "the server cannot be asked about that stream")
	})
}

func TestAPendingVersionOfAnEarlierRecorderKeepsVerifiedBack(t *testing.T) {
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
		finds(t, all.Probe, notified, 1)
		require.Zero(t, all.Verified(time.Now()))
		require.Equal(t, before, c.GapBegin().Time, "its gap begins where the earlier recorders have checked")
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
		require.Zero(t, all.Verified(rolledBack), "that entry was observed before the gaps")
		require.Zero(t, all.Verified(listed))
		require.Equal(t, time.Now().Add(-settledAfter), all.Verified(time.Now()))
	})
}

func TestAGlanceChecksEachNewestVersionOnce(t *testing.T) {
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

func TestTheNewestVersionIsCheckedEachSecondAndTheOthersEachTen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 100}
		for rv := range 20 {
			etcd.versions = append(etcd.versions, servedAs("x", "1", 20+rv))
		}
		c, _ := followed(all, "configmaps", etcd, 10)
		go all.KeepProbing(t.Context(), slog.New(slog.DiscardHandler))
		asked := func() (seconds int) {
			for range 60 {
				before := etcd.asked.Load()
				time.Sleep(time.Second)
				synctest.Wait()
				if etcd.asked.Load() > before {
					seconds++
				}
			}
			return seconds
		}
		time.Sleep(time.Second / 2)
		for i, version := range etcd.versions {
			c.Saw(version, false)
			before := etcd.asked.Load()
			time.Sleep(time.Second)
			synctest.Wait()
			require.Greater(t, etcd.asked.Load(), before, "after %d s", i)
		}
		require.Equal(t, 6, asked(), "nothing was served: only the probes ask")
	})
}
