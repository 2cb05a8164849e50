package rollback

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
)

func TestARefusedWatchShowsAnotherCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := followed(New(Options{}), "configmaps", &archive{}, 10)
		lasts := func(from string, err error, lasting time.Duration) {
			c.Watching(from)
			time.Sleep(lasting)
			c.Reached(from)
			c.Closed(err)
		}
		lasts("10", nil, time.Minute)
		began := c.trust.window.acceptedAt
		lasts("20", nil, time.Minute)
		require.EqualValues(t, 10, c.trust.window.acceptedRevision)
		require.Zero(t, c.trust.window.earliestBeginAt)
		lasts("30", apierrors.NewResourceExpired("too old"), 0)
		require.Equal(t, time.Now(), c.trust.window.earliestBeginAt)
		require.EqualValues(t, 10, c.trust.window.acceptedRevision, "the older revision is of the old cache")
		lasts("35", nil, time.Minute)
		require.EqualValues(t, 35, c.trust.window.acceptedRevision)
		require.True(t, c.trust.window.acceptedAt.After(began))
		begins := c.trust.window.earliestBeginAt
		time.Sleep(2 * minWindow)
		lasts("40", apierrors.NewResourceExpired("too old"), 0)
		require.Equal(t, begins, c.trust.window.earliestBeginAt, "the same cache may have dropped that revision")
	})
}

// The API server was restarted. Etcd was put back under it before the stream was watched again, or before the
// restart. In the first case, the cache can only be watched from its begin.
func TestANewCacheIsTrustedIfTheNewHistoryWasThere(t *testing.T) {
	old := []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("lost", "3", 56), servedAs("c", "3", 58)}
	for name, test := range map[string]struct {
		served  []*kube.Object
		trusted bool
	}{
		"in the old history": {old, false},
		"in the new history": {append(slices.Clone(old), servedAs("c", "4", 75)), true},
	} {
		t.Run(name, func(t *testing.T) { checkTrustOfNewCache(t, test.served, test.trusted) })
	}
}

func checkTrustOfNewCache(t *testing.T, served []*kube.Object, trusted bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		server := &watchCache{begun: 60, archive: &archive{now: 80, versions: []*kube.Object{
			servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("hidden", "9", 55), servedAs("c", "4", 75)}}}
		server.cached = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("c", "4", 75)}
		c, _ := followed(all, "configmaps", server.archive, 10)
		c.ListWith(server.lister)
		c.Watching("10")
		for _, o := range served {
			time.Sleep(time.Second)
			c.Saw(o, false)
			c.Reached(o.ResourceVersion)
		}
		c.Closed(nil)
		time.Sleep(10 * time.Second)
		c.Watching("58")
		c.Closed(apierrors.NewResourceExpired("too old"))
		time.Sleep(10 * time.Second)
		require.NoError(t, all.lookBack(t.Context()))
		require.True(t, c.RolledBack())
		if err := checkList(t, c, "80", server.page()); trusted {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "restart the API server")
		}
	})
}

func TestASlowRefusalDoesNotCountAsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := followed(New(Options{}), "configmaps", &archive{}, 10)
		c.Watching("30")
		time.Sleep(2 * acceptedAfter)
		c.Closed(apierrors.NewResourceExpired("too old"))
		require.Zero(t, c.trust.window.acceptedRevision)
		require.True(t, c.trust.window.refused)
	})
}

// The server forbade the resource for a moment. Then the stream was listed from the old cache.
func TestAListForAnotherCauseDoesNotMakeACacheNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		server := &watchCache{begun: 5, archive: &archive{now: 80, versions: []*kube.Object{
			servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("hidden", "9", 55), servedAs("c", "4", 75)}}}
		server.cached = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("c", "4", 75)}
		c, _ := followed(all, "configmaps", server.archive, 10)
		c.ListWith(server.lister)
		c.Watching("10")
		for _, o := range []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("lost", "3", 56), servedAs("c", "3", 58), servedAs("c", "4", 75)} {
			time.Sleep(time.Second)
			c.Saw(o, false)
			c.Reached(o.ResourceVersion)
		}
		c.Closed(nil)
		c.Listing(delta.CauseForbidden)
		c.Watching("80")
		c.Shown(server.page())
		c.Listed("")
		c.Reached("80")
		time.Sleep(2 * acceptedAfter)
		require.NoError(t, all.lookBack(t.Context()))
		require.True(t, c.RolledBack())
		require.ErrorContains(t, checkList(t, c, "80", server.page()), "restart the API server")
	})
}

// The API server was restarted, and etcd was put back under it after that. One stream learns from where its cache
// can be watched when another was already served the new history.
func TestACacheThatWasWatchedLateMayHaveBegunEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		server := &watchCache{begun: 60, archive: &archive{now: 80, versions: []*kube.Object{
			servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("hidden", "9", 55), servedAs("s", "8", 70), servedAs("c", "4", 75)}}}
		server.cached = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("c", "4", 75)}
		c, _ := followed(all, "configmaps", server.archive, 10)
		c.ListWith(server.lister)
		neighbour, _ := followed(all, "secrets", server.archive, 60)
		join(c, neighbour)
		c.Watching("10")
		for _, o := range []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("lost", "3", 56), servedAs("c", "3", 58)} {
			time.Sleep(time.Second)
			c.Saw(o, false)
			c.Reached(o.ResourceVersion)
		}
		c.Closed(nil)
		c.Watching("58")
		c.Closed(apierrors.NewResourceExpired("too old"))
		time.Sleep(time.Second)
		neighbour.Saw(servedAs("s", "8", 70), false)
		time.Sleep(time.Second)
		c.Reached("80") // a recovery has accounted for the revisions in between
		c.Watching("80")
		time.Sleep(2 * acceptedAfter)
		require.NoError(t, all.lookBack(t.Context()))
		require.True(t, c.RolledBack())
		require.ErrorContains(t, checkList(t, c, "80", server.page()), "restart the API server")
	})
}

// A cut watch may be behind when it ends. Its own cache may then refuse it.
func TestACutWatchEndedWhenAVersionWasLastServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for cut, want := range map[time.Duration]bool{time.Second: true, 45 * time.Second: false} {
			c, _ := followed(New(Options{}), "configmaps", &archive{}, 10)
			c.Watching("10")
			time.Sleep(time.Minute)
			c.Saw(servedAs("a", "1", 40), false)
			servedAt := time.Now()
			time.Sleep(cut)
			c.Closed(errors.New("the connection is lost"))
			time.Sleep(30 * time.Second)
			c.Watching("40")
			c.Closed(apierrors.NewResourceExpired("too old"))
			require.Equal(t, want, c.trust.window.earliestBeginAt.Equal(servedAt), "cut off for %s before that was noticed", cut)
			require.Equal(t, want, !c.trust.window.earliestBeginAt.IsZero())
		}
	})
}

// An earlier recorder was served the lost version. The API server was restarted after this process began.
func TestACacheThatServedNothingOfTheOldHistoryIsTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &watchCache{begun: 70, archive: &archive{now: 80, versions: []*kube.Object{servedAs("c", "4", 75)}}}
		server.cached = server.versions
		c, _ := followed(New(Options{}), "configmaps", server.archive, 60)
		c.ListWith(server.lister)
		c.Watching("60")
		c.Closed(apierrors.NewResourceExpired("too old"))
		c.Watching("80")
		time.Sleep(2 * acceptedAfter)
		require.NoError(t, c.rollBack(t.Context(), evidence{"proof", servedAsVersion("lost", "3", 50), 50, true, time.Time{}, 0}))
		require.NoError(t, checkList(t, c, "80", server.page()))
	})
}
