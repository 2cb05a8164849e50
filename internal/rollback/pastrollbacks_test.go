package rollback

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A recorder found a rollback, and was killed when it had rolled back one stream.
func TestAPastRollbackOnRecordRollsAStreamBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		allAdded := make(chan struct{})
		all.allAdded = allAdded
		// The stream itself proves nothing: the only lost write was a deletion.
		etcd, apart := &archive{now: 100, versions: []*kube.Object{servedAs("kept", "1", 20)}}, &archive{now: 900}
		began := time.Now().Add(-time.Hour)
		pastRollbacks := []postgres.Reversal{
			{Stream: 6, Proof: "it went backwards"}, {Stream: 7, Proof: "it went backwards", FromRV: "48", FromAt: began}, {Stream: 7, Proof: "it went backwards", FromRV: "55", FromAt: time.Now()},
		}
		late, notified := followed(all, "services", etcd, 60, servedAs("kept", "1", 20))
		late.id = 1
		late.Recall(Recalled{PastRollbacks: pastRollbacks})
		_, err := late.CheckRollback(t.Context(), "60")
		require.ErrorIs(t, err, errNotAllAdded, "the stream is not followed before that is known")

		other, notifiedOther := followed(all, "metrics", apart, 800)
		other.id = 2
		other.Recall(Recalled{PastRollbacks: pastRollbacks})
		before, _ := followed(all, "configmaps", etcd, 60)
		before.id = 7
		proof, err := late.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.Equal(t, "it went backwards", proof)
		require.Equal(t, []string{proof}, *notified)
		until := late.GapBegin()
		require.Equal(t, "48", until.ResourceVersion, "the rows since then may not be complete")
		require.Equal(t, began, until.Time)
		proof, err = other.CheckRollback(t.Context(), "800")
		require.NoError(t, err)
		require.Empty(t, proof)
		require.Empty(t, *notifiedOther)

		alone, notifiedAlone := followed(all, "secrets", etcd, 60)
		alone.id = 3
		alone.Recall(Recalled{PastRollbacks: []postgres.Reversal{{Stream: 8, Proof: "it went backwards"}}})
		close(allAdded)
		_, err = alone.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.Equal(t, []string{"it went backwards"}, *notifiedAlone, "no stream is there that could be asked")
	})
}

// The resource that showed the rollback is not followed yet, and the stream waits for it.
func TestARollbackOnRecordIsNotFoundASecondTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		all.allAdded = make(chan struct{})
		etcd := &archive{now: 80, versions: []*kube.Object{servedAs("kept", "1", 20), servedAs("new", "3", 70)}}
		late, notified := followed(all, "secrets", etcd, 0)
		late.Recall(Recalled{Position: "52"})
		late.id = 1
		late.Recall(Recalled{PastRollbacks: []postgres.Reversal{{Stream: 7, Proof: "it went backwards", FromRV: "48", FromAt: time.Now()}}})
		late.Recall(Recalled{Unverified: []postgres.Version{{Namespace: "ns", Name: "lost", UID: "2", ResourceVersion: "50", Observed: time.Now()}}})
		listed, notifiedListed := followed(all, "services", etcd, 0, servedAs("new", "3", 70))
		listed.Recall(Recalled{Position: "75"})
		_, err := late.CheckRollback(t.Context(), "52")
		require.ErrorIs(t, err, errNotAllAdded)
		require.NoError(t, all.Probe(t.Context()))
		require.Empty(t, *notifiedListed, "it was listed since")

		finder, _ := followed(all, "configmaps", etcd, 75)
		finder.id = 7
		_, err = late.CheckRollback(t.Context(), "52")
		require.NoError(t, err)
		require.Equal(t, []string{"it went backwards"}, *notified)
		require.NotNil(t, late.trust.cacheCheck, "the recorder that found it may have distrusted the cache")
		require.NoError(t, all.Probe(t.Context()))
		require.Empty(t, *notifiedListed)
	})
}

// A recorder was killed when all other streams had been listed since the rollback.
func TestARollbackWithAnOpenGapIsNotFoundASecondTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 56, versions: []*kube.Object{servedAs("kept", "1", 20)}}
		held, _ := followed(all, "secrets", etcd, 0)
		held.Recall(Recalled{Position: "60", Newest: []string{"60"}})
		held.Recall(Recalled{RolledBack: true})
		listed, notifiedListed := followed(all, "services", etcd, 0)
		listed.Recall(Recalled{Position: "55"})
		require.NoError(t, all.Probe(t.Context()))
		require.Empty(t, *notifiedListed, "it was listed since")
		until := held.GapBegin().ResourceVersion
		require.Empty(t, until, "where the gap begins is on record")
		held.Listing(delta.CauseHistoryReversed)
		held.Listed("")
		held.Reached("56")
		require.NoError(t, all.Probe(t.Context()))
		require.Empty(t, *notifiedListed)
		require.True(t, knownSameEtcd(held, listed))
	})
}
