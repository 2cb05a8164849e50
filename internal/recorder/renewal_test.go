package recorder

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
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

	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// watchCache is an API server's cache over an archive, which lists what that has for cached.
type watchCache struct {
	*archive
	begun    int // its window begins after that revision
	watched  []string
	uncached bool
	checked  bool // the server knows that it is not to be trusted
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
	answer := watch.NewFakeWithChanSize(1, false)
	if from, err := strconv.Atoi(options.ResourceVersion); err != nil || from < w.begun {
		gone := apierrors.NewResourceExpired("too old").Status()
		answer.Error(&gone)
	} else {
		answer.Stop()
	}
	return answer, nil
}

// overtaken is a stream of an etcd that was put back to 50 when it was at 60, and has come to 80; its watch began at 10 and was served what
// was undone. Its cache does not hold what was written at 55.
func overtaken(t *testing.T) (c *claims, server *watchCache) {
	t.Helper()
	all := newRevisions()
	server = &watchCache{begun: 5, archive: &archive{now: 80, versions: []*kube.Object{
		servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("hidden", "9", 55), servedAs("c", "4", 75)}}}
	server.cached = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("c", "4", 75)}
	c, _ = followed(all, "configmaps", server.archive, 10)
	c.listWith(server.lister)
	c.watching("10")
	for _, o := range []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("lost", "3", 56), servedAs("c", "3", 58), servedAs("c", "4", 75)} {
		time.Sleep(time.Second)
		c.saw(o, false)
		c.reached(o.ResourceVersion)
	}
	require.NoError(t, all.lookBack(t.Context()))
	require.True(t, c.left())
	return c, server
}

func (w *watchCache) shows() []any {
	var page []any
	for _, o := range w.cached {
		page = append(page, o)
	}
	return page
}

func TestACacheThatWasBegunInTheOldHistoryIsNotBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := overtaken(t)
		for range 3 {
			require.ErrorContains(t, c.Truthful(t.Context(), "80", server.shows()), "restart it")
			time.Sleep(30 * time.Second)
		}
		require.Equal(t, "47", server.watched[0], "before the newest that both histories have")
		server.begun, server.now = 90, 95 // restarted
		require.NoError(t, c.Truthful(t.Context(), "95", server.shows()))
	})
}

func TestACacheThatWasBegunInTheNewHistoryIsBelieved(t *testing.T) {
	for name, test := range map[string]struct {
		change func(c *claims, server *watchCache)
		listed string
	}{
		"it cannot be watched from what both have":           {func(_ *claims, server *watchCache) { server.begun = 51 }, "80"},
		"it is not where the old one was":                    {func(*claims, *watchCache) {}, "74"},
		"it was begun where etcd was behind what was served": {func(c *claims, _ *watchCache) { c.doubt.reach, c.doubt.begins = 48, time.Now() }, "80"},
		"there is none": {func(_ *claims, server *watchCache) { server.uncached = true }, "80"},
		"nothing of the old history came since it was there": {func(c *claims, _ *watchCache) { c.doubt.began = time.Now() }, "80"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, server := overtaken(t)
				test.change(c, server)
				server.now, _ = strconv.Atoi(test.listed)
				server.versions, server.cached = server.versions[:3], server.cached[:2]
				require.NoError(t, c.Truthful(t.Context(), test.listed, server.shows()))
			})
		})
	}
}

// What has passed the old cache by, because nothing that both histories have is new enough, shows when it is restarted.
func TestWhereNothingInCommonCanBeWatchedTheCacheHasToBeginAnewSince(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := overtaken(t)
		c.doubt.reach = 48
		require.Error(t, c.Truthful(t.Context(), "80", server.shows()))
		require.Equal(t, []string{"75"}, server.watched)
		server.now = 85
		require.Error(t, c.Truthful(t.Context(), "85", server.shows()))
		time.Sleep(2 * watchedBack)
		server.begun, server.now = 90, 95
		require.Error(t, c.Truthful(t.Context(), "95", server.shows()), "so old a place may have been forgotten by the old one, too")
		server.begun, server.now = 100, 105
		require.NoError(t, c.Truthful(t.Context(), "105", server.shows()))
		require.Equal(t, []string{"75", "79", "84", "94"}, server.watched)
	})
}

func TestAServerThatHasCheckedItsCacheIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := overtaken(t)
		server.checked = true
		require.Error(t, c.Truthful(t.Context(), "80", server.shows()))
		time.Sleep(checkedAfter)
		require.Error(t, c.Truthful(t.Context(), "80", server.shows()), "it is not what etcd has")
		server.cached = server.versions
		require.Error(t, c.Truthful(t.Context(), "80", server.shows()), "all that is listed is not compared with each attempt")
		time.Sleep(checkedAgain)
		require.NoError(t, c.Truthful(t.Context(), "80", server.shows()))
	})
}

func TestAStreamThatWasNotFollowedBeforeIsBelieved(t *testing.T) {
	server := &watchCache{archive: &archive{now: 80, versions: []*kube.Object{servedAs("a", "1", 40)}}}
	server.cached = server.versions
	c, _ := followed(newRevisions(), "configmaps", server.archive, 60, servedAs("lost", "3", 50))
	c.listWith(server.lister)
	c.cached = window{}
	require.NoError(t, c.found(t.Context(), evidence{"proof", servedAsWitness("lost", "3", 50), 50, footprint{}}))
	require.NoError(t, c.Truthful(t.Context(), "80", server.shows()))
	require.Empty(t, server.watched)
}

func servedAsWitness(name, uid string, rv int) witness {
	return witnessOf(servedAs(name, uid, rv), uint64(rv))
}

func TestAGapBeginsWhereTheOldHistoryWasServedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c, _ := overtaken(t)
		until, at := c.servedUntil()
		require.Equal(t, "58", until, "what came after it is of the new one")
		require.Equal(t, 4*time.Second, at.Sub(began))
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
			require.NoError(t, c.found(t.Context(), evidence{"proof", servedAsWitness("c", "3", 58), 58, footprint{}}))
			until, _ := c.servedUntil()
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
		require.NoError(t, finder.found(t.Context(), evidence{"proof", servedAsWitness("lost", "3", 58), 58, footprint{}}))
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
		require.Error(t, finder.found(t.Context(), evidence{"proof", servedAsWitness("lost", "3", 58), 58, footprint{}}))
		finder.listing(reflector.CauseHistoryReversed)
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
		require.Error(t, c.found(t.Context(), evidence{"proof", servedAsWitness("c", "3", 58), 58, footprint{}}))
		require.Empty(t, *told)
		etcd.fails = nil
		require.NoError(t, all.lookBack(t.Context()))
		require.Len(t, *told, 1)
		until, _ := c.servedUntil()
		require.Equal(t, "58", until)
	})
}

func TestAWatchThatIsRefusedIsThatOfAnotherCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := followed(newRevisions(), "configmaps", &archive{}, 10)
		lasts := func(from string, err error, lasting time.Duration) {
			c.watching(from)
			time.Sleep(lasting)
			c.reached(from)
			c.closed(err)
		}
		lasts("10", nil, time.Minute)
		began := c.cached.began
		lasts("20", nil, time.Minute)
		require.EqualValues(t, 10, c.cached.reach)
		require.Zero(t, c.cached.begins)
		lasts("30", apierrors.NewResourceExpired("too old"), 0)
		require.Equal(t, time.Now(), c.cached.begins)
		require.EqualValues(t, 10, c.cached.reach, "what was before it, is known of the one before it")
		lasts("35", nil, time.Minute)
		require.EqualValues(t, 35, c.cached.reach)
		require.True(t, c.cached.began.After(began))
		begins := c.cached.begins
		time.Sleep(2 * watchedBack)
		lasts("40", apierrors.NewResourceExpired("too old"), 0)
		require.Equal(t, begins, c.cached.begins, "it may have forgotten that")
	})
}

// undoneWithoutVersions is a stream of an etcd that was put back to 50 when it was at 60, which it had come to without a version that says so: by
// deletions, or by what is left out. It was taken over from the record a month before that, at 10.
func undoneWithoutVersions(t *testing.T) (c *claims, server *watchCache) {
	t.Helper()
	all := newRevisions()
	server = &watchCache{begun: 5, archive: &archive{now: 60, versions: []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48)}}}
	c, _ = followed(all, "configmaps", server.archive, 0)
	c.listWith(server.lister)
	c.recall(&postgres.Known{}, "10", nil)
	c.watching("10")
	time.Sleep(30 * 24 * time.Hour)
	for _, o := range []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48)} {
		time.Sleep(time.Second)
		c.saw(o, false)
		c.reached(o.ResourceVersion)
	}
	c.reached("60")
	require.NoError(t, all.probe(t.Context()))
	require.False(t, c.left())
	time.Sleep(10 * time.Second)
	server.now = 51
	require.NoError(t, all.probe(t.Context()))
	require.True(t, c.left())
	return c, server
}

func TestACacheIsNotBelievedEitherWhereNoVersionShowsWhatWasUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := undoneWithoutVersions(t)
		server.now = 80
		server.versions = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("hidden", "9", 55), servedAs("c", "4", 75)}
		server.cached = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("c", "4", 75)}
		require.ErrorContains(t, c.Truthful(t.Context(), "80", server.shows()), "restart it")
	})
}

func TestAGapBeginsAtThePositionWhereNoVersionShowsWhatWasUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := undoneWithoutVersions(t)
		rv, at := c.servedUntil()
		require.Equal(t, "60", rv)
		require.Equal(t, 10*time.Second, time.Since(at))
	})
}

// The watch is opened before a list of several pages has come to its end.
func TestACacheIsNotBelievedEitherAfterAListOfSeveralPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := followed(newRevisions(), "configmaps", &archive{}, 10)
		c.listing(reflector.CauseFirstList)
		c.watching("10")
		c.listed()
		time.Sleep(time.Minute)
		c.all.mu.Lock()
		defer c.all.mu.Unlock()
		require.NotNil(t, c.doubtLocked(&parted{}))
	})
}

// The API server was restarted, and etcd put back under it before the stream was watched again, when it can be watched from where it began only; or before
// it was restarted.
func TestACacheThatWasBegunAnewIsBelievedIfTheNewHistoryWasThere(t *testing.T) {
	old := []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("lost", "3", 56), servedAs("c", "3", 58)}
	for name, test := range map[string]struct {
		served   []*kube.Object
		believed bool
	}{
		"in the old history": {old, false},
		"in the new history": {append(slices.Clone(old), servedAs("c", "4", 75)), true},
	} {
		t.Run(name, func(t *testing.T) { isBelievedAnew(t, test.served, test.believed) })
	}
}

func isBelievedAnew(t *testing.T, served []*kube.Object, believed bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		server := &watchCache{begun: 60, archive: &archive{now: 80, versions: []*kube.Object{
			servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("hidden", "9", 55), servedAs("c", "4", 75)}}}
		server.cached = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("c", "4", 75)}
		c, _ := followed(all, "configmaps", server.archive, 10)
		c.listWith(server.lister)
		c.watching("10")
		for _, o := range served {
			time.Sleep(time.Second)
			c.saw(o, false)
			c.reached(o.ResourceVersion)
		}
		c.closed(nil)
		time.Sleep(10 * time.Second)
		c.watching("58")
		c.closed(apierrors.NewResourceExpired("too old"))
		time.Sleep(10 * time.Second)
		require.NoError(t, all.lookBack(t.Context()))
		require.True(t, c.left())
		if err := c.Truthful(t.Context(), "80", server.shows()); believed {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "restart it")
		}
	})
}

func TestARefusalThatTakesItsTimeIsNoAcceptance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := followed(newRevisions(), "configmaps", &archive{}, 10)
		c.watching("30")
		time.Sleep(2 * opensFor)
		c.closed(apierrors.NewResourceExpired("too old"))
		require.Zero(t, c.cached.reach)
		require.True(t, c.cached.anew)
	})
}

// Permission was withdrawn for a moment, and the stream was listed when it was back, from the cache that there was before.
func TestAListThatWasDueToSomethingElseMakesNoCacheYounger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		server := &watchCache{begun: 5, archive: &archive{now: 80, versions: []*kube.Object{
			servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("hidden", "9", 55), servedAs("c", "4", 75)}}}
		server.cached = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("c", "4", 75)}
		c, _ := followed(all, "configmaps", server.archive, 10)
		c.listWith(server.lister)
		c.watching("10")
		for _, o := range []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("lost", "3", 56), servedAs("c", "3", 58), servedAs("c", "4", 75)} {
			time.Sleep(time.Second)
			c.saw(o, false)
			c.reached(o.ResourceVersion)
		}
		c.closed(nil)
		c.listing(reflector.CauseForbidden)
		c.watching("80")
		c.shown(server.shows())
		c.listed()
		c.reached("80")
		time.Sleep(2 * opensFor)
		require.NoError(t, all.lookBack(t.Context()))
		require.True(t, c.left())
		require.ErrorContains(t, c.Truthful(t.Context(), "80", server.shows()), "restart it")
	})
}

// The API server was restarted, and etcd put back under it after that; what it can be watched from shows to one stream when another was served the new history already.
func TestACacheThatCouldBeWatchedLateMayHaveBegunEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := newRevisions()
		server := &watchCache{begun: 60, archive: &archive{now: 80, versions: []*kube.Object{
			servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("hidden", "9", 55), servedAs("s", "8", 70), servedAs("c", "4", 75)}}}
		server.cached = []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("c", "4", 75)}
		c, _ := followed(all, "configmaps", server.archive, 10)
		c.listWith(server.lister)
		beside, _ := followed(all, "secrets", server.archive, 60)
		c.join(beside)
		c.watching("10")
		for _, o := range []*kube.Object{servedAs("a", "1", 40), servedAs("b", "2", 48), servedAs("lost", "3", 56), servedAs("c", "3", 58)} {
			time.Sleep(time.Second)
			c.saw(o, false)
			c.reached(o.ResourceVersion)
		}
		c.closed(nil)
		c.watching("58")
		c.closed(apierrors.NewResourceExpired("too old"))
		time.Sleep(time.Second)
		beside.saw(servedAs("s", "8", 70), false)
		time.Sleep(time.Second)
		c.reached("80") // what is between was looked for in etcd
		c.watching("80")
		time.Sleep(2 * opensFor)
		require.NoError(t, all.lookBack(t.Context()))
		require.True(t, c.left())
		require.ErrorContains(t, c.Truthful(t.Context(), "80", server.shows()), "restart it")
	})
}

// A watch that nobody hears may be behind by the time that it ends, and be refused by the cache that it was of.
func TestAWatchThatWasCutOffEndedWhenSomethingWasServedLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for cut, want := range map[time.Duration]bool{time.Second: true, 45 * time.Second: false} {
			c, _ := followed(newRevisions(), "configmaps", &archive{}, 10)
			c.watching("10")
			time.Sleep(time.Minute)
			c.saw(servedAs("a", "1", 40), false)
			heard := time.Now()
			time.Sleep(cut)
			c.closed(errors.New("the connection is lost"))
			time.Sleep(30 * time.Second)
			c.watching("40")
			c.closed(apierrors.NewResourceExpired("too old"))
			require.Equal(t, want, c.cached.begins.Equal(heard), "cut off for %s before that was noticed", cut)
			require.Equal(t, want, !c.cached.begins.IsZero())
		}
	})
}

// What is undone was served to a recorder before this one, and the API server was restarted since that began.
func TestACacheThatServedThisProcessNothingOfTheOldHistoryIsBelieved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &watchCache{begun: 70, archive: &archive{now: 80, versions: []*kube.Object{servedAs("c", "4", 75)}}}
		server.cached = server.versions
		c, _ := followed(newRevisions(), "configmaps", server.archive, 60)
		c.listWith(server.lister)
		c.watching("60")
		c.closed(apierrors.NewResourceExpired("too old"))
		c.watching("80")
		time.Sleep(2 * opensFor)
		require.NoError(t, c.found(t.Context(), evidence{"proof", servedAsWitness("lost", "3", 50), 50, footprint{}}))
		require.NoError(t, c.Truthful(t.Context(), "80", server.shows()))
	})
}
