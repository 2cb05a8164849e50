package recorder

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// breaksOff lets the server answer once more, and then no more.
func (a *archive) breaksOff() {
	a.meanwhile = func() {
		a.meanwhile = func() { a.fails = errDown }
	}
}

// The server ends before it has said where the histories have parted. When it is back, the stream is in the new one.
func TestWhatHasProvedAReversalIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		etcd := &archive{now: 40, versions: []*kube.Object{servedAs("kept", "1", 20)}}
		c, told := followed(all, "configmaps", etcd, 50)
		c.saw(servedAs("kept", "1", 20), false)
		c.saw(servedAs("lost", "2", 52), true)
		c.reached("60")
		etcd.breaksOff()
		_, err := c.Reversed(t.Context(), "60")
		require.Error(t, err)
		require.Empty(t, *told)
		etcd.fails, etcd.now = nil, 80
		etcd.serves(c, servedAs("new", "3", 70), true)
		c.reached("70")
		proof, err := c.Reversed(t.Context(), "70")
		require.NoError(t, err)
		require.Equal(t, "configmaps was recorded up to resource version 60, which etcd has not come to", proof)
		require.Equal(t, []string{proof}, *told)

		c.listing(delta.CauseHistoryReversed)
		c.listed()
		c.reached("80")
		proof, err = c.Reversed(t.Context(), "80")
		require.NoError(t, err)
		require.Empty(t, proof, "it is not what it was left for")
	})
}

// The definition of its resource is not in the restored etcd.
func TestWhatWasProvedByAStreamThatIsNotFollowedAnyMoreIsToldToOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		etcd := &archive{now: 100}
		w, _ := followed(all, "widgets", etcd, 50)
		c, told := followed(all, "configmaps", etcd, 50)
		require.NoError(t, all.tie(t.Context()))
		w.saw(servedAs("lost-w", "1", 52), false)
		time.Sleep(time.Millisecond)
		c.saw(servedAs("lost-c", "2", 53), false)
		c.reached("60")
		etcd.breaksOff()
		require.Error(t, all.lookBack(t.Context()))
		require.Empty(t, *told)
		w.follow(nil)
		etcd.fails = nil
		etcd.serves(c, servedAs("new", "3", 70), true)
		c.reached("70")
		require.NoError(t, all.probe(t.Context()))
		require.Len(t, *told, 1)
	})
}

func TestAnEtcdThatIsAwayKeepsNobodyFromLeavingTheHistoryOfAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		down, etcd := &archive{now: 100, fails: errDown}, &archive{now: 100}
		x, _ := followed(all, "aggregated", down, 50)
		c, told := followed(all, "configmaps", etcd, 50)
		for _, s := range []*claims{x, c} {
			s.saw(servedAs("kept", "1", 40), false) // for the question where the histories have parted
			s.keepProof(evidence{proof: "proof", at: 52})
		}
		require.Error(t, all.lookBack(t.Context()))
		require.Equal(t, []string{"proof"}, *told)
	})
}

// lateAnswer has something happen between an answer and its arrival.
type lateAnswer struct {
	*archive
	at        string
	meanwhile func()
}

func (a *lateAnswer) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := a.archive.ListWithContext(ctx, options)
	if happens := a.meanwhile; happens != nil && options.ResourceVersion == a.at {
		a.meanwhile = nil
		happens()
	}
	return list, err
}

func (c *claims) listsAnew() {
	c.listing(delta.CauseHistoryReversed)
	c.listed()
	c.reached("100")
}

// The probe waits for an answer while the reflector finds it out itself, and lists.
func TestAnAnswerThatIsOfAHistoryThatWasLeftProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		etcd := &archive{now: 55, versions: []*kube.Object{servedAs("kept", "1", 20)}}
		c, told := followed(all, "configmaps", etcd, 60, servedAs("kept", "1", 20))
		late := &lateAnswer{archive: etcd, at: "60"}
		c.listWith(func(string) cache.ListerWithContext { return late })
		late.meanwhile = func() {
			proof, err := c.Reversed(t.Context(), "60")
			require.NoError(t, err)
			require.NotEmpty(t, proof)
			c.listsAnew()
		}
		proof, err := c.verify(t.Context(), 0)
		require.NoError(t, err)
		require.Empty(t, proof)
		require.Len(t, *told, 1)
	})
}

// The same of a sample, where a list has shown it that went back by itself.
func TestASampleThatIsOfAHistoryThatWasLeftProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		etcd := &archive{now: 100}
		c, told := followed(all, "configmaps", etcd, 60)
		c.saw(servedAs("lost", "2", 52), false)
		late := &lateAnswer{archive: etcd, at: "52"}
		c.listWith(func(string) cache.ListerWithContext { return late })
		late.meanwhile = c.listsAnew
		require.NoError(t, all.lookBack(t.Context()))
		require.Empty(t, *told)
	})
}

// The probe waits its turn with a proof, while the stream is told the same by another, and listed.
func TestAProofOfAHistoryThatWasLeftMeanwhileIsNotActedUpon(t *testing.T) {
	all := newRevisions()
	etcd := &archive{now: 100}
	b, toldB := followed(all, "secrets", etcd, 60)
	c, told := followed(all, "configmaps", etcd, 60)
	b.join(c)
	e := evidence{proof: "proof", at: 52}
	require.NoError(t, b.leaveFor(t.Context(), e))
	require.NoError(t, all.tell(t.Context()))
	require.True(t, c.left())
	for _, s := range []*claims{b, c} {
		s.listsAnew()
	}
	require.NoError(t, c.found(t.Context(), e))
	c.keepProof(e)
	require.NoError(t, all.lookBack(t.Context()))
	require.Len(t, *told, 1)
	require.Len(t, *toldB, 1)
}

// While it is listed for another reason, a reversal is found beside it that it cannot be told, and then proved by what it was served itself.
func TestAProofDoesNotOutliveTheListThatTakesAStreamIntoAnotherHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		kept := []*kube.Object{servedAs("kept", "1", 20)}
		d, toldD := followed(all, "secrets", &archive{now: 100, versions: kept}, 60)
		etcd := &archive{now: 100, versions: kept, fails: errDown}
		c, _ := followed(all, "configmaps", etcd, 60)
		c.saw(servedAs("lost", "2", 52), false)
		_ = d.found(t.Context(), evidence{proof: "proof", at: 53})
		require.Len(t, *toldD, 1)
		c.listing(delta.CauseExpired)
		etcd.fails = nil
		etcd.breaksOff()
		require.Error(t, all.lookBack(t.Context()))
		etcd.fails = nil
		c.listed()
		c.reached("100")
		d.listsAnew()
		for range 3 {
			require.NoError(t, all.probe(t.Context()))
		}
		require.Len(t, *toldD, 1)
	})
}

// What was served is kept without what need not be kept, and held against all of it.
func TestAVersionIsTheSameWithoutWhatNeedNotBeKept(t *testing.T) {
	for name, text := range map[string]string{
		"no managers":      `{"metadata":{"name":"x","managedFields":[]}}`,
		"parts of seconds": `{"metadata":{"name":"x","managedFields":[{"time":"2026-01-02T03:04:05.5Z"}]}}`,
		"null":             `{"metadata":{"name":"x","creationTimestamp":null,"managedFields":null}}`,
		"nothing":          `{"metadata":{"name":"x"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			c := &claims{canonical: transformer(nil)}
			served, now := servedAs("x", "1", 52), servedAs("x", "1", 52)
			for _, o := range []*kube.Object{served, now} {
				o.JSON = []byte(text)
				_, err := c.canonical(o)
				require.NoError(t, err)
			}
			require.True(t, c.sameMetadata(now, witnessOf(served, 52).reduced()))
		})
	}
}

// A full queue has held the reflector up with an event of the old history when its stream was told.
func TestWhatIsServedAfterAStreamWasToldCountsAgainstNoHistory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		etcd := &archive{now: 100, versions: []*kube.Object{servedAs("kept", "1", 20)}}
		c, told := followed(all, "configmaps", etcd, 60, servedAs("kept", "1", 20))
		require.NoError(t, c.found(t.Context(), evidence{proof: "proof", at: 52}))
		require.Len(t, *told, 1)
		c.saw(servedAs("lost", "2", 58), false)
		c.listing(delta.CauseHistoryReversed)
		c.listed()
		c.reached("100")
		time.Sleep(time.Second)
		etcd.now = 110
		etcd.serves(c, servedAs("new", "3", 105), true)
		c.reached("105")
		require.NoError(t, all.probe(t.Context()))
		require.Len(t, *told, 1)
	})
}

// Evidence of a history that was left by a list must not make each watch of the stream wait until all others are told.
func TestAProofOfAHistoryThatWasLeftHoldsNothingUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		kept := []*kube.Object{servedAs("kept", "1", 20)}
		d, _ := followed(all, "secrets", &archive{now: 100, versions: kept}, 60)
		etcd := &archive{now: 100, versions: kept, fails: errDown}
		c, _ := followed(all, "configmaps", etcd, 60)
		c.saw(servedAs("lost", "2", 52), false)
		_, _ = followed(all, "aggregated", &archive{fails: errDown}, 60)
		_ = d.found(t.Context(), evidence{proof: "proof", at: 53})
		c.listing(delta.CauseExpired)
		etcd.fails = nil
		etcd.breaksOff()
		require.Error(t, all.lookBack(t.Context()))
		etcd.fails = nil
		c.listed()
		c.reached("100")
		_, err := c.Reversed(t.Context(), "100")
		require.NoError(t, err)
	})
}

// The server answers for who has a proof, and never for those of whom it is known what they were served.
func TestAStreamWithAProofLeavesThoughOthersAreAwayForGood(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		etcd, down := &archive{now: 55}, &archive{fails: errDown}
		c, told := followed(all, "configmaps", etcd, 60)
		d, _ := followed(all, "routes", down, 60, servedAs("r", "7", 45))
		c.join(d)
		_, _ = c.Reversed(t.Context(), "60")
		require.Len(t, *told, 1)
	})
}

// The same, with a reversal of another etcd of which the stream was not told.
func TestWhoIsNotFollowedAnyMoreLearnsThroughOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		etcd := &archive{now: 100}
		w, _ := followed(all, "widgets", etcd, 50)
		_, told := followed(all, "configmaps", etcd, 50)
		x, _ := followed(all, "aggregated", &archive{now: 900}, 800)
		require.NoError(t, all.tie(t.Context()))
		require.False(t, x.knownTogether(w))
		w.keepProof(evidence{proof: "proof", at: 52})
		w.follow(nil)
		w.listWith((&archive{fails: apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "")}).lister)
		require.NoError(t, x.found(t.Context(), evidence{proof: "another", at: 700}))
		x.listsAnew()
		require.Empty(t, *told)
		_ = all.probe(t.Context())
		require.Equal(t, []string{"proof"}, *told)
	})
}

func TestWhatOthersAreRefusedIsNoRefusalOfTheFinder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		c, told := followed(all, "configmaps", &archive{now: 55}, 60)
		d, _ := followed(all, "widgets", &archive{}, 60)
		d.listWith((&archive{fails: apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "")}).lister)
		_, err := c.Reversed(t.Context(), "60")
		require.Len(t, *told, 1)
		require.False(t, apierrors.IsNotFound(err), "%v", err)
	})
}

// The finder is alone in its etcd, which is away for good before others are told.
func TestNobodyWaitsForGoodForWhoHasFoundAReversal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		apart, etcd := &archive{now: 700}, &archive{now: 100, fails: errDown}
		x, _ := followed(all, "aggregated", apart, 800)
		c, told := followed(all, "configmaps", etcd, 60)
		_, _ = x.Reversed(t.Context(), "800")
		require.True(t, x.left())
		apart.fails, etcd.fails = errDown, nil
		_, err := c.Reversed(t.Context(), "60")
		require.Error(t, err)
		time.Sleep(finderPatience)
		_, err = c.Reversed(t.Context(), "60")
		require.NoError(t, err)
		require.Len(t, *told, 1)
	})
}

// A list shows it while it is asked where the histories have parted.
func TestAProofIsNotActedUponAfterAListHasShownIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		etcd := &archive{now: 100}
		c, told := followed(all, "configmaps", etcd, 60)
		c.saw(servedAs("lost", "2", 52), false)
		late := &lateAnswer{archive: etcd, at: "52", meanwhile: c.listsAnew}
		c.listWith(func(string) cache.ListerWithContext { return late })
		require.NoError(t, c.found(t.Context(), evidence{proof: "proof", at: 58}))
		require.Nil(t, late.meanwhile, "it was not asked: this shows nothing")
		require.Empty(t, *told)
		require.Empty(t, all.reversals)
	})
}

func TestTheFirstProofStands(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		c, told := followed(all, "configmaps", &archive{now: 100}, 60)
		c.keepProof(evidence{proof: "first", at: 52})
		c.keepProof(evidence{proof: "second", at: 55})
		c.untold = []postgres.Reversal{{Proof: "on record"}}
		require.NoError(t, all.lookBack(t.Context()))
		require.Empty(t, *told, "it may be one on record")
		c.untold = nil
		require.NoError(t, all.lookBack(t.Context()))
		require.Equal(t, []string{"first"}, *told)
	})
}

// The stream with the proof is listed anew while the server says where the histories have parted, or the server ends first.
func TestASiblingIsLookedAtWhereAProofComesToNothing(t *testing.T) {
	for name, ends := range map[string]bool{"listed meanwhile": false, "the server ends": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := newRevisions()
				etcd := &archive{now: 100}
				c, _ := followed(all, "configmaps", etcd, 50)
				d, told := followed(all, "secrets", etcd, 50)
				c.join(d)
				etcd.serves(c, servedAs("first", "1", 52), false)
				etcd.serves(d, servedAs("lost", "2", 53), false)
				etcd.serves(d, servedAs("new", "3", 70), true)
				// After the newest and the first were looked at.
				if ends {
					etcd.meanwhile = etcd.breaksOff
					require.Error(t, all.lookBack(t.Context()))
					c.listsAnew()
					etcd.fails = nil
				} else {
					etcd.meanwhile = func() { etcd.meanwhile = func() { etcd.meanwhile = c.listsAnew } }
					require.NoError(t, all.lookBack(t.Context()))
				}
				require.Empty(t, *told)
				require.NoError(t, all.lookBack(t.Context()))
				require.Len(t, *told, 1)
				require.Contains(t, (*told)[0], "ns/lost")
			})
		})
	}
}
