package recorder

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
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
		o := servedAs("new", "3", 70)
		etcd.fails, etcd.now, etcd.versions = nil, 80, append(etcd.versions, o)
		c.saw(o, false)
		c.reached("70")
		proof, err := c.Reversed(t.Context(), "70")
		require.NoError(t, err)
		require.Equal(t, "configmaps was recorded up to resource version 60, which etcd has not come to", proof)
		require.Equal(t, []string{proof}, *told)

		c.listing(reflector.CauseHistoryReversed)
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
		o := servedAs("new", "3", 70)
		etcd.fails, etcd.versions = nil, append(etcd.versions, o)
		c.saw(o, false)
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
	c.listing(reflector.CauseHistoryReversed)
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
		c.listing(reflector.CauseExpired)
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
