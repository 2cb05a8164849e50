package rollback

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
	"github.com/kuberewind/kuberewind/internal/canonical"
	"github.com/kuberewind/kuberewind/kube"
)

// lateAnswer calls meanwhile between an answer and its arrival.
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

func (c *Stream) listsAfterRollback() {
	c.Listing(delta.CauseHistoryReversed)
	c.Listed("")
	c.Reached("100")
}

// While the probe waits for an answer, the reflector finds the rollback itself, and lists.
func TestAnAnswerAboutAnOldHistoryProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 55, versions: []*kube.Object{servedAs("kept", "1", 20)}}
		c, notified := followed(all, "configmaps", etcd, 60, servedAs("kept", "1", 20))
		late := &lateAnswer{archive: etcd, at: "60"}
		c.ListWith(func(string) cache.ListerWithContext { return late })
		late.meanwhile = func() {
			proof, err := c.CheckRollback(t.Context(), "60")
			require.NoError(t, err)
			require.NotEmpty(t, proof)
			c.listsAfterRollback()
		}
		require.NoError(t, checkNewest(t.Context(), c, 0))
		require.Len(t, *notified, 1)
	})
}

// The same for a sample. Here, the list itself shows the rollback.
func TestASampleOfAnOldHistoryProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 100}
		c, notified := followed(all, "configmaps", etcd, 60)
		c.Saw(servedAs("lost", "2", 52), false)
		late := &lateAnswer{archive: etcd, at: "52"}
		c.ListWith(func(string) cache.ListerWithContext { return late })
		late.meanwhile = c.listsAfterRollback
		finds(t, all.lookBack, notified, 0)
	})
}

// A kept version has only a part of its metadata. It is compared with whole objects.
func TestAReducedVersionMatchesTheWholeObject(t *testing.T) {
	for name, text := range map[string]string{
		"no managers":      `{"metadata":{"name":"x","managedFields":[]}}`,
		"parts of seconds": `{"metadata":{"name":"x","managedFields":[{"time":"2026-01-02T03:04:05.5Z"}]}}`,
		"null":             `{"metadata":{"name":"x","creationTimestamp":null,"managedFields":null}}`,
		"nothing":          `{"metadata":{"name":"x"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			a := &asker{canonical: canonical.Transformer(nil)}
			served, now := servedAs("x", "1", 52), servedAs("x", "1", 52)
			for _, o := range []*kube.Object{served, now} {
				o.JSON = []byte(text)
				_, err := a.canonical(o)
				require.NoError(t, err)
			}
			require.True(t, a.sameMetadata(now, versionOf(served, 52).reduced()))
		})
	}
}

// A full queue had delayed the reflector, with an event of the old history, when its stream was rolled back.
func TestAVersionServedAfterARollbackProvesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 100, versions: []*kube.Object{servedAs("kept", "1", 20)}}
		c, notified := followed(all, "configmaps", etcd, 60, servedAs("kept", "1", 20))
		require.NoError(t, c.rollBack(t.Context(), evidence{proof: "proof", oldRevision: 52}))
		require.Len(t, *notified, 1)
		c.Saw(servedAs("lost", "2", 58), false)
		c.Listing(delta.CauseHistoryReversed)
		c.Listed("")
		c.Reached("100")
		time.Sleep(time.Second)
		etcd.now = 110
		etcd.serves(c, servedAs("new", "3", 105), true)
		c.Reached("105")
		finds(t, all.Probe, notified, 1)
	})
}

// The server answers for the stream with the proof. It never answers for the other stream, which has an
// observation.
func TestAProofCountsThoughTheServerNeverAnswersForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd, down := &archive{now: 55}, &archive{fails: errDown}
		c, notified := followed(all, "configmaps", etcd, 60)
		d, _ := followed(all, "routes", down, 60, servedAs("r", "7", 45))
		join(c, d)
		_, _ = c.CheckRollback(t.Context(), "60")
		require.Len(t, *notified, 1)
	})
}

func TestARefusalForAnotherStreamIsNoRefusalOfTheFinder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		c, notified := followed(all, "configmaps", &archive{now: 55}, 60)
		d, _ := followed(all, "widgets", &archive{}, 60)
		d.ListWith((&archive{fails: apierrors.NewNotFound(schema.GroupResource{Resource: "widgets"}, "")}).lister)
		_, err := c.CheckRollback(t.Context(), "60")
		require.Len(t, *notified, 1)
		require.False(t, apierrors.IsNotFound(err), "%v", err)
	})
}
