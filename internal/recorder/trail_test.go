package recorder

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
)

func TestAGapBeginsWhereTheOldHistoryWasServedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c, _ := overtaken(t)
		until := c.servedUntil()
		require.Equal(t, "58", until.ResourceVersion, "what came after it is of the new one")
		require.Equal(t, 4*time.Second, until.Time.Sub(began))
	})
}

// No other stream is in that etcd, and no reversal was found that has a number.
func TestAGapDoesNotBeginInAHistoryThatWasLeftByAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &archive{now: 110}
		c, _ := followed(newRevisions(), "events", etcd, 50)
		c.saw(servedAs("lost", "1", 30_000), false)
		c.listsAnew()
		time.Sleep(time.Hour)
		etcd.serves(c, servedAs("kept", "2", 101), true)
		time.Sleep(time.Second)
		served := time.Now()
		c.saw(servedAs("lost", "3", 120), false)
		time.Sleep(time.Second)
		require.NoError(t, c.found(t.Context(), evidence{"proof", servedAsWitness("lost", "3", 120), 120, footprint{}, c.history}))
		until := c.servedUntil()
		require.Equal(t, "120", until.ResourceVersion)
		require.Equal(t, served, until.Time)
	})
}

// Both were held up, and are served at once what they have missed.
func TestAGapBeginsBeforeAStreamWasServedTheNewHistoryAlsoIfAnotherWasServedTheOldOneLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all, began := newRevisions(), time.Now()
		etcd := &archive{now: 80, versions: []*kube.Object{servedAs("a", "1", 40), servedAs("c", "4", 75)}}
		ahead, _ := followed(all, "configmaps", etcd, 10)
		behind, _ := followed(all, "secrets", etcd, 10)
		ahead.join(behind)
		for second, by := range []struct {
			of *claims
			o  *kube.Object
		}{{behind, servedAs("b", "2", 39)}, {ahead, servedAs("a", "1", 40)}, {ahead, servedAs("c", "4", 75)}, {behind, servedAs("lost", "3", 58)}} {
			time.Sleep(time.Until(began.Add(time.Duration(second) * time.Second)))
			by.of.saw(by.o, false)
		}
		require.NoError(t, behind.found(t.Context(), evidence{"proof", servedAsWitness("lost", "3", 58), 58, footprint{}, 0}))
		until := ahead.servedUntil()
		require.Equal(t, "40", until.ResourceVersion)
		require.Equal(t, time.Second, until.Time.Sub(began))
		until = behind.servedUntil()
		require.Equal(t, "58", until.ResourceVersion)
		require.Equal(t, 3*time.Second, until.Time.Sub(began))
		require.Equal(t, "40", until.Common.ResourceVersion)
		require.Equal(t, began, until.Common.Time, "it was served no other that is in both")
	})
}

func TestAGapBeginsEarlierWhereEtcdHasForgotten(t *testing.T) {
	for compacted, want := range map[int]string{49: "58", 57: "58", 60: "40", 76: "40"} {
		synctest.Test(t, func(t *testing.T) {
			all := newRevisions()
			etcd := &archive{now: 80, compacted: compacted, versions: []*kube.Object{servedAs("a", "1", 40), servedAs("c", "4", 75)}}
			c, _ := followed(all, "configmaps", etcd, 10)
			for _, o := range []*kube.Object{servedAs("a", "1", 40), servedAs("lost", "3", 56), servedAs("c", "3", 58), servedAs("c", "4", 75)} {
				c.saw(o, false)
			}
			require.NoError(t, c.found(t.Context(), evidence{"proof", servedAsWitness("c", "3", 58), 58, footprint{}, 0}))
			until := c.servedUntil().ResourceVersion
			require.Equal(t, want, until, "compacted at %d", compacted)
		})
	}
}

// In the first seconds nobody has looked yet which streams are in one etcd.
func TestWhatOthersWereServedTellsWhereHistoriesPartedAlsoIfTheyAreKnownToBeBesideItOnlyLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		etcd := &archive{now: 80, versions: []*kube.Object{servedAs("a", "1", 40), servedAs("c", "4", 75)}}
		finder, _ := followed(all, "secrets", etcd, 60, servedAs("lost", "3", 58))
		other, told := followed(all, "configmaps", etcd, 60, servedAs("a", "1", 40), servedAs("gone", "2", 56), servedAs("c", "4", 75))
		require.NoError(t, finder.found(t.Context(), evidence{"proof", servedAsWitness("lost", "3", 58), 58, footprint{}, 0}))
		require.Len(t, *told, 1)
		for _, c := range []*claims{finder, other} {
			require.EqualValues(t, 40, c.parted.common.revision)
			require.EqualValues(t, 58, c.parted.last.revision)
		}
	})
}

// A cache that was begun since can be watched from there.
func TestWhatIsServedInTheNewHistoryIsNotTakenForWhatIsInBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		versions := []*kube.Object{servedAs("a", "1", 40), servedAs("new", "4", 52)}
		etcd, silent := &archive{now: 55, versions: versions}, &archive{now: 55, versions: versions, fails: apierrors.NewServiceUnavailable("it is being restarted")}
		finder, _ := followed(all, "secrets", etcd, 60, servedAs("lost", "3", 58))
		other, told := followed(all, "configmaps", silent, 60, servedAs("a", "1", 40))
		require.Error(t, finder.found(t.Context(), evidence{"proof", servedAsWitness("lost", "3", 58), 58, footprint{}, 0}))
		finder.listing(delta.CauseHistoryReversed)
		finder.listed()
		finder.saw(servedAs("new", "4", 52), false)
		require.Len(t, finder.headLocked().trail, 1)
		silent.fails = nil
		require.NoError(t, all.tell(t.Context()))
		require.Len(t, *told, 1)
		require.EqualValues(t, 40, other.parted.common.revision)
		require.Len(t, finder.headLocked().trail, 1, "and is kept")
	})
}

// Nobody is told before it is known where the gap begins.
func TestAReversalIsFoundAgainWhereEtcdDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		etcd := &archive{now: 80, versions: []*kube.Object{servedAs("c", "4", 75)}}
		c, told := followed(all, "configmaps", etcd, 10, servedAs("c", "3", 58))
		etcd.fails = apierrors.NewServiceUnavailable("it is being restarted")
		require.Error(t, c.found(t.Context(), evidence{"proof", servedAsWitness("c", "3", 58), 58, footprint{}, 0}))
		require.Empty(t, *told)
		etcd.fails = nil
		require.NoError(t, all.lookBack(t.Context()))
		require.Len(t, *told, 1)
		until := c.servedUntil().ResourceVersion
		require.Equal(t, "58", until)
	})
}

func TestAGapBeginsAtThePositionWhereNoVersionShowsWhatWasUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := undoneWithoutVersions(t)
		until := c.servedUntil()
		require.Equal(t, "60", until.ResourceVersion)
		require.Equal(t, 10*time.Second, time.Since(until.Time))
	})
}
