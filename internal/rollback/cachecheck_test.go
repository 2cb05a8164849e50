package rollback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
)

// watchCache is an API server's cache over an archive. It lists the archive's cached objects.
type watchCache struct {
	*archive
	begun    int // its window begins after that revision
	events   int // events that it has, one at each revision
	watched  []string
	uncached bool
	cut      bool // watches are cut before they deliver anything
	checked  bool // the server knows that its cache is wrong
}

func (w *watchCache) lister(string) cache.ListerWithContext { return w }

func (w *watchCache) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	switch {
	case options.ResourceVersionMatch == metav1.ResourceVersionMatchNotOlderThan:
		ahead := apierrors.NewTimeoutError("Too large resource version", map[bool]int{true: 0, false: 1}[w.uncached])
		ahead.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, ahead
	case options.FieldSelector == "" && options.ResourceVersionMatch == metav1.ResourceVersionMatchExact:
		list := &kube.List{ListMeta: metav1.ListMeta{ResourceVersion: options.ResourceVersion}, Items: w.cached}
		if w.checked {
			list.Items = w.versions
		}
		return list, nil
	case options.ResourceVersion == strconv.FormatInt(math.MaxInt64, 10):
		ahead := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", math.MaxInt64, w.now), 0)
		ahead.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, ahead
	}
	return w.archive.ListWithContext(ctx, options)
}

func (w *watchCache) Watch(metav1.ListOptions) (watch.Interface, error) {
	return nil, errors.New("watched without a context")
}

func (w *watchCache) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	w.watched = append(w.watched, options.ResourceVersion)
	if w.cut {
		return watch.NewEmptyWatch(), nil
	}
	answer := watch.NewFakeWithChanSize(max(w.events, 1), false)
	if from, err := strconv.Atoi(options.ResourceVersion); err != nil || from < w.begun {
		gone := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", from, w.begun)).Status()
		answer.Error(&gone)
	} else {
		for rv := from + 1; rv <= w.begun+w.events; rv++ {
			answer.Modify(servedAs("a", "1", rv))
		}
	}
	return answer, nil
}

// overtaken returns a stream of an etcd that was put back to 50 when it was at 60, and has reached 80. Its watch
// began at 10 and was served the lost versions. Its cache lacks the version of 55. The rollback is found.
func overtaken(t *testing.T) (c *Stream, server *watchCache) {
	t.Helper()
	c, server = undetected(t)
	require.NoError(t, c.all.lookBack(t.Context()))
	require.True(t, c.RolledBack())
	return c, server
}

// undetected returns the same stream before the rollback is found.
func undetected(t *testing.T) (c *Stream, server *watchCache) {
	t.Helper()
	all := New(Options{})
	server = &watchCache{begun: 5, archive: &archive{now: 80, versions: []*kube.Object{
		servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("hidden", "9", 55), servedAs("c", "4", 75)}}}
	server.cached = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("c", "4", 75)}
	c, _ = followed(all, "configmaps", server.archive, 10)
	c.ListWith(server.lister)
	c.Watching("10")
	for _, o := range []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("lost", "3", 56), servedAs("c", "3", 58), servedAs("c", "4", 75)} {
		time.Sleep(time.Second)
		c.Saw(o, false)
		c.Reached(o.ResourceVersion)
	}
	return c, server
}

func (w *watchCache) page() []any {
	var page []any
	for _, o := range w.cached {
		page = append(page, o)
	}
	return page
}

func TestACacheFromTheOldHistoryIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := overtaken(t)
		for range 3 {
			require.ErrorContains(t, checkList(t, c, "80", server.page()), "restart the API server")
			time.Sleep(30 * time.Second)
		}
		require.Equal(t, "47", server.watched[0], "before the newest revision that both histories have")
		server.begun, server.now = 90, 95 // restarted
		require.NoError(t, checkList(t, c, "95", server.page()))
	})
}

func TestACacheFromTheNewHistoryIsTrusted(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *Stream, server *watchCache)
		listed string
	}{
		"it cannot be watched from a revision of both": {func(_ *Stream, server *watchCache) { server.begun = 51 }, "80"},
		"it is behind the old cache":                   {func(*Stream, *watchCache) {}, "74"},
		"it began when etcd was behind the served version": {func(c *Stream, _ *watchCache) {
			c.trust.cacheCheck.acceptedRevision, c.trust.cacheCheck.earliestBeginAt = 48, time.Now()
		}, "80"},
		"there is no cache":                    {func(_ *Stream, server *watchCache) { server.uncached = true }, "80"},
		"it served nothing of the old history": {func(c *Stream, _ *watchCache) { c.trust.cacheCheck.acceptedAt = time.Now() }, "80"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server := overtaken(t)
				test.change(c, server)
				server.now, _ = strconv.Atoi(test.listed)
				server.versions, server.cached = server.versions[:3], server.cached[:2]
				require.NoError(t, checkList(t, c, test.listed, server.page()))
			})
		})
	}
}

func TestAllStreamsOfAnEtcdAreListedAtTheRevisionOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := undetected(t)
		quiet, _ := followed(c.all, "leases", server.archive, 10)
		quiet.ListWith(server.lister)
		quiet.Watching("10")
		quiet.following.openedAt = c.following.openedAt
		join(c, quiet)
		require.NoError(t, c.all.lookBack(t.Context()))
		require.True(t, quiet.RolledBack())
		at := func(c *Stream, listed string) string {
			at, err := c.CheckList(t.Context(), listed, server.page())
			require.NoError(t, err)
			return at
		}
		server.uncached = true
		require.Empty(t, at(c, "80"), "a resource without a cache says nothing about other caches")
		server.uncached = false
		server.begun, server.now = 90, 95 // restarted
		require.Equal(t, "95", at(c, "95"), "the first list sets the revision")
		c.Listing(delta.CauseHistoryReversed)
		c.Listed("95")
		c.Reached("95")
		server.now = 99
		require.Equal(t, "95", at(quiet, "99"))
		require.Equal(t, "95", at(quiet, "93"), "its list began before")
		time.Sleep(2 * commonListFor)
		require.Equal(t, "99", at(quiet, "99"), "that was too long ago")
		time.Sleep(2 * commonListFor)
		require.Equal(t, "95", at(quiet, "95"), "and this list sets the next one")
		quiet.trust.cacheCheck = nil
		require.Empty(t, at(quiet, "99"), "its cache may have something of the old history after 95")
		quiet.Listing(delta.CauseHistoryReversed)
		quiet.Listed("99")
		require.Empty(t, at(quiet, "99"), "it is not rolled back")

		server.now = 93 // put back again
		proof, err := c.CheckRollback(t.Context(), "95")
		require.NoError(t, err)
		require.NotEmpty(t, proof)
		require.Zero(t, c.etcd.commonListRevision, "the next history has a list of its own")
	})
}

// If no revision of both histories is new enough, only a restart of the API server can show that its cache is new.
func TestWithoutAWatchableCommonRevisionACacheMustBeginLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := overtaken(t)
		c.trust.cacheCheck.acceptedRevision = 48
		require.Error(t, checkList(t, c, "80", server.page()))
		require.Equal(t, []string{"75"}, server.watched)
		server.now = 85
		require.Error(t, checkList(t, c, "85", server.page()))
		time.Sleep(2 * minWindow)
		server.begun, server.events, server.now = 90, minWindowEvents, 95
		require.Error(t, checkList(t, c, "95", server.page()), "the old cache may have dropped so old a revision, too")
		server.begun, server.now = 100, 105
		require.NoError(t, checkList(t, c, "105", server.page()))
		require.Equal(t, []string{"75", "79", "84", "90", "94"}, server.watched)
	})
}

// It does not matter how long the API server was away.
func TestACacheThatDroppedNothingBeganWhereItsWindowBegins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := overtaken(t)
		c.trust.cacheCheck.acceptedRevision = 48
		require.Error(t, checkList(t, c, "80", server.page()))
		time.Sleep(2 * minWindow)
		server.begun, server.now = 90, 95
		require.NoError(t, checkList(t, c, "95", server.page()))
		require.Equal(t, []string{"75", "79", "90"}, server.watched)
	})
}

// A recorder was killed while a list was not trusted yet, or before the list.
func TestARecorderThatRecallsARollbackDistrustsTheCache(t *testing.T) {
	for name, test := range map[string]struct {
		begun   int
		events  int
		listed  string
		trusted bool
	}{
		"it served the lost versions":           {5, 0, "80", false},
		"it may have served them":               {70, minWindowEvents, "80", false},
		"it began later":                        {70, minWindowEvents - 1, "80", true},
		"it is behind the one that served them": {5, 0, "55", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &watchCache{begun: test.begun, events: test.events, archive: &archive{now: 80, versions: []*kube.Object{servedAs("a", "1", 40)}}}
				server.cached = server.versions
				server.now, _ = strconv.Atoi(test.listed)
				c := New(Options{}).Add(Spec{Name: "configmaps"})
				c.ListWith(server.lister)
				c.Recall(Recalled{Position: "60", Newest: []string{"58"}})
				c.Recall(Recalled{RolledBack: true})
				for range 2 {
					err := checkList(t, c, test.listed, server.page())
					require.Equal(t, test.trusted, err == nil, err)
					time.Sleep(2 * minWindow)
				}
				time.Sleep(comparedWithin)
				require.NoError(t, checkList(t, c, test.listed, server.page()), "the server has compared its cache with etcd")
			})
		})
	}
}

func TestAWatchThatIsCutShowsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := overtaken(t)
		server.cut = true
		require.ErrorIs(t, checkList(t, c, "80", server.page()), io.ErrUnexpectedEOF)
	})
}

func TestACacheThatRefusesASpooledRevisionIsNotTakenForNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &watchCache{begun: 65, archive: &archive{now: 80, versions: []*kube.Object{servedAs("a", "1", 40)}}}
		server.cached = server.versions
		c := New(Options{}).Add(Spec{Name: "configmaps"})
		c.ListWith(server.lister)
		c.Recall(Recalled{Position: "60"})
		c.Recall(Recalled{RolledBack: true, Spooled: "70"})
		require.Error(t, checkList(t, c, "80", server.page()))
	})
}

func TestAServerThatHasComparedItsCacheIsTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := overtaken(t)
		server.checked = true
		require.Error(t, checkList(t, c, "80", server.page()))
		time.Sleep(comparedWithin)
		require.Error(t, checkList(t, c, "80", server.page()), "the list differs from etcd")
		server.cached = server.versions
		require.Error(t, checkList(t, c, "80", server.page()), "not each attempt compares whole lists")
		time.Sleep(compareAgainAfter)
		require.NoError(t, checkList(t, c, "80", server.page()))
		require.NoError(t, checkList(t, c, "80", server.page()))
	})
}

// A recorder that has just started finds the rollback. The cache has served it nothing, but it may have served the
// recorder before it.
func TestACacheThatMayHaveServedAnEarlierRecorderIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &watchCache{archive: &archive{now: 80, versions: []*kube.Object{servedAs("a", "1", 40)}}, begun: 30, events: 45}
		server.cached = server.versions
		c, _ := followed(New(Options{}), "configmaps", server.archive, 0)
		c.ListWith(server.lister)
		c.Recall(Recalled{Position: "60"})
		require.NoError(t, c.rollBack(t.Context(), evidence{"proof", servedAsVersion("lost", "3", 50), 50, true, time.Time{}, 0}))
		require.ErrorContains(t, checkList(t, c, "80", server.page()), "restart the API server")
		server.begun, server.now = 82, 85
		require.NoError(t, checkList(t, c, "85", server.page()), "the API server was restarted after that")
	})
}

// The watch of a quiet stream was accepted before another stream proved the rollback. The old cache has served all of
// the old history before that, to an earlier recorder.
func TestAnAcceptedWatchOfARecorderThatHasJustStartedIsNoReasonToTrustTheCache(t *testing.T) {
	for name, servedHere := range map[string]bool{
		"the lost version was served to the earlier recorder": false,
		"the old cache has served it to this one, too":        true,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := &watchCache{archive: &archive{now: 80, versions: []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 75)}}, begun: 30, events: 45}
				server.cached = server.versions[:1]
				all := New(Options{})
				busy, _ := followed(all, "secrets", server.archive, 45, servedAs("b", "2", 75))
				busy.Reached("75")
				c, _ := followed(all, "configmaps", server.archive, 0)
				c.etcd = busy.etcd
				c.ListWith(server.lister)
				c.Recall(Recalled{Position: "60"})
				c.Watching("60")
				time.Sleep(2 * time.Second)
				require.NoError(t, c.rollBack(t.Context(), evidence{"proof", servedAsVersion("lost", "3", 50), 50, servedHere, time.Time{}, 0}))
				require.ErrorContains(t, checkList(t, c, "80", server.page()), "restart the API server")
				c.trust.cacheCheck.onRecord = false
				require.NoError(t, checkList(t, c, "80", server.page()), "only the record speaks against the cache")
			})
		})
	}
}

// The stream was begun by this process, after etcd was put back.
func TestAListOfAStreamThatIsNotOnRecordIsTrusted(t *testing.T) {
	c := New(Options{}).Add(Spec{Name: "configmaps"})
	c.Recall(Recalled{Position: "60", Begun: true})
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	require.Nil(t, newCacheCheckLocked(c, &fork{}))
}

func servedAsVersion(name, uid string, rv int) servedVersion {
	return versionOf(servedAs(name, uid, rv), uint64(rv))
}

// rolledBackWithoutVersions returns a stream of an etcd that was put back to 50 when it was at 60. No version shows
// that it had reached 60: the writes were deletions, or filtered out. This process took the stream over from the
// record at 10, a month before that.
func rolledBackWithoutVersions(t *testing.T) (c *Stream, server *watchCache) {
	t.Helper()
	all := New(Options{})
	server = &watchCache{begun: 5, archive: &archive{now: 60, versions: []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48)}}}
	c, _ = followed(all, "configmaps", server.archive, 0)
	c.ListWith(server.lister)
	c.Recall(Recalled{Position: "10"})
	c.Watching("10")
	time.Sleep(30 * 24 * time.Hour)
	for _, o := range []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48)} {
		time.Sleep(time.Second)
		c.Saw(o, false)
		c.Reached(o.ResourceVersion)
	}
	c.Reached("60")
	require.NoError(t, all.Probe(t.Context()))
	require.False(t, c.RolledBack())
	time.Sleep(10 * time.Second)
	server.now = 51
	require.NoError(t, all.Probe(t.Context()))
	require.True(t, c.RolledBack())
	return c, server
}

func TestACacheIsNotTrustedIfNoVersionShowsTheLostWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := rolledBackWithoutVersions(t)
		server.now = 80
		server.versions = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("hidden", "9", 55), servedAs("c", "4", 75)}
		server.cached = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("c", "4", 75)}
		require.ErrorContains(t, checkList(t, c, "80", server.page()), "restart the API server")
	})
}

// The watch is opened before a list of several pages is complete.
func TestACacheIsNotTrustedAfterAListOfSeveralPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := followed(New(Options{}), "configmaps", &archive{}, 10)
		c.Listing(delta.CauseFirstList)
		c.Watching("10")
		c.Listed("")
		time.Sleep(time.Minute)
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		require.NotNil(t, newCacheCheckLocked(c, &fork{}))
	})
}
