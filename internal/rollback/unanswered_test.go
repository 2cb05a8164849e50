package rollback

import (
	"context"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
)

var errDown = apierrors.NewServiceUnavailable("down")

// hanging is an API server that does not answer while it hangs.
type hanging struct {
	*archive
	hangs bool
}

func (h *hanging) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if h.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return h.archive.ListWithContext(ctx, options)
}

func (h *hanging) lister(string) cache.ListerWithContext { return h }

// A list from the resource's cache lacks the versions of the new history.
func TestVersionsOfAResourceThatDoesNotAnswerMayBeOfTheOldHistory(t *testing.T) {
	for name, stop := range map[string]func(*Stream, *archive){
		"it is down":    func(_ *Stream, etcd *archive) { etcd.fails = errDown },
		"it is refused": func(c *Stream, _ *archive) { c.Interrupted(delta.CauseForbidden) },
		"it is stopped": func(c *Stream, _ *archive) { c.Follow(nil) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := New(Options{})
				down := &archive{now: 80}
				c, _ := followed(all, "configmaps", &archive{now: 80, versions: []*kube.Object{servedAs("c", "4", 75)}}, 80, servedAs("c", "4", 75))
				d, _ := followed(all, "routes", down, 60, servedAs("lost", "7", 58))
				join(c, d)
				d.Watching("10")
				time.Sleep(2 * acceptedAfter)
				stop(d, down)
				// The proof is on record. No stream of this process was served it.
				require.NoError(t, c.rollBack(t.Context(), evidence{"proof", servedAsVersion("lost", "2", 50), 50, true, time.Time{}, 0}))
				require.True(t, d.RolledBack())
				p, err := d.trust.cacheCheck.fork.find(t.Context())
				require.NoError(t, err)
				require.False(t, p.newSince.IsZero(), "so its cache must be checked")
			})
		})
	}
}

// distant is an API server that takes a while for each answer.
type distant struct{ *archive }

func (d *distant) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	time.Sleep(5 * time.Millisecond)
	return d.archive.ListWithContext(ctx, options)
}

// In the first minutes, it is not known yet which streams share an etcd.
func TestARollbackOfManyUngroupedStreamsTakesFewRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 500}
		const many, each = 200, 3
		for i := range many {
			c, _ := followed(all, strconv.Itoa(i), etcd, 1)
			c.ListWith(func(string) cache.ListerWithContext { return &distant{etcd} })
			for n := range each {
				c.Saw(servedAs("o", "1", 1000+n*many+i), false)
			}
			c.Reached("1600")
		}
		_, err := all.streams[0].CheckRollback(t.Context(), "1600")
		require.NoError(t, err)
		for _, c := range all.streams {
			require.True(t, c.RolledBack())
		}
		require.Less(t, etcd.asked.Load(), int64(many*10))
	})
}

// The etcd that does not answer may have only one stream, and come first.
func TestAnEtcdThatDoesNotAnswerKeepsNoOtherFromBeingAsked(t *testing.T) {
	for name, many := range map[string]int{"one resource": 1, "more than are looked at in a round": 2 * groupedPerRound} {
		t.Run(name, func(t *testing.T) {
			all := New(Options{})
			for i := range many {
				followed(all, "routes"+strconv.Itoa(i), &archive{fails: errDown}, 60)
			}
			etcd := &archive{now: 100}
			_, notified := followed(all, "configmaps", etcd, 60)
			neighbour, notifiedNeighbour := followed(all, "services", etcd, 50)
			for range 4 {
				_ = all.Probe(t.Context())
			}
			require.True(t, knownSameEtcd(all.streams[many], neighbour))
			etcd.now = 55
			require.Error(t, all.Probe(t.Context()))
			require.Len(t, *notified, 1)
			require.Len(t, *notifiedNeighbour, 1)
		})
	}
}

func TestStreamsForWhichTheServerHangsAreAskedAtOnceAndNotInTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		c, notified := followed(all, "configmaps", &archive{now: 55}, 60)
		for i := range 10 {
			d, _ := followed(all, "routes"+strconv.Itoa(i), nil, 60)
			d.ListWith((&hanging{hangs: true}).lister)
		}
		began := time.Now()
		proof, err := c.CheckRollback(t.Context(), "60")
		require.NoError(t, err, "that they hang is no error")
		require.Equal(t, []string{proof}, *notified)
		require.LessOrEqual(t, time.Since(began), 3*askTimeout)
	})
}

func TestAStreamIsRolledBackThoughTheFinderDoesNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 100, versions: []*kube.Object{servedAs("kept", "1", 20)}}
		finder, _ := followed(all, "routes", etcd, 60, servedAs("lost", "3", 50))
		neighbour, _ := followed(all, "configmaps", etcd, 60)
		join(finder, neighbour)
		proof, err := finder.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.NotEmpty(t, proof)

		down := &archive{fails: errDown}
		finder.ListWith(down.lister)
		late, notified := followed(all, "services", etcd, 60, servedAs("kept", "1", 20))
		late.Recall(Recalled{Position: "60"})
		got, err := late.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.Equal(t, proof, got)
		require.Equal(t, []string{proof}, *notified)

		apart, notified := followed(all, "metrics", &archive{fails: errDown}, 60)
		apart.Recall(Recalled{Position: "60"})
		_, err = apart.CheckRollback(t.Context(), "60")
		require.Error(t, err, "of a stream without an answer, it is not known")
		require.Empty(t, *notified)
	})
}

// Definitions can share a webhook that does not answer.
func TestResourcesThatHangDelayTheSamplesOfOthersOnlyOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		for i := range samplesPerProbe / 2 {
			d, _ := followed(all, "widgets"+strconv.Itoa(i), nil, 60)
			d.ListWith((&hanging{hangs: true}).lister)
			d.Saw(servedAs("w"+strconv.Itoa(i), "1", 50+i), false)
			if i > 0 {
				join(all.streams[0], d)
			}
		}
		kept := servedAs("kept", "1", 71)
		c, notified := followed(all, "configmaps", &archive{now: 100, versions: []*kube.Object{kept}}, 60)
		join(all.streams[0], c)
		c.Saw(servedAs("lost", "1", 70), false)
		time.Sleep(time.Millisecond)
		c.Saw(kept, false)
		began := time.Now()
		require.Error(t, all.lookBack(t.Context()))
		require.Len(t, *notified, 1)
		require.LessOrEqual(t, time.Since(began), 4*askTimeout, "they delay the search of the fork once, too")
	})
}

func TestAResourceThatHangsIsAskedOnceInAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		server := &hanging{archive: &archive{now: 100}}
		c, notified := followed(all, "routes", server.archive, 60)
		c.ListWith(server.lister)
		for i := range samplesPerProbe {
			time.Sleep(time.Second)
			o := servedAs("x"+strconv.Itoa(i), "1", 61+i)
			c.Saw(o, false)
			server.versions = append(server.versions, o)
		}
		server.versions = server.versions[1:] // the oldest version is lost
		server.hangs = true
		began := time.Now()
		require.Error(t, all.lookBack(t.Context()))
		require.Equal(t, askTimeout, time.Since(began), "the other samples wait for their turn")
		require.Len(t, slices.Concat(c.samples.pending.kept, c.samples.beforePause.kept), samplesPerProbe)
		server.hangs = false
		finds(t, all.lookBack, notified, 1)
	})
}

// inexact is a server that cannot make a whole list at an exact resource version. Then only a later begin of its
// window shows that its cache is new.
type inexact struct{ *watchCache }

func (i *inexact) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.FieldSelector == "" && options.ResourceVersionMatch == metav1.ResourceVersionMatchExact {
		return nil, apierrors.NewBadRequest("no such lists")
	}
	return i.watchCache.ListWithContext(ctx, options)
}

func TestACacheThatCannotBeComparedIsTrustedIfItBeganLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := overtaken(t)
		c.ListWith(func(string) cache.ListerWithContext { return &inexact{server} })
		c.trust.cacheCheck.acceptedRevision = 48 // no revision of both histories can be watched from
		require.Error(t, checkList(t, c, "80", server.page()))
		time.Sleep(comparedWithin)
		require.ErrorContains(t, checkList(t, c, "80", server.page()), "no such lists")
		time.Sleep(20 * time.Second)
		server.begun, server.now = 90, 95
		require.NoError(t, checkList(t, c, "95", server.page()))
	})
}

// A stream cannot be notified while it is not followed: its resource was not served, or was served in another
// version.
func TestAStreamThatIsRolledBackBetweenTwoRunsIsListedInTheNext(t *testing.T) {
	all := New(Options{})
	etcd := &archive{now: 100}
	c, _ := followed(all, "widgets", etcd, 50)
	followed(all, "configmaps", etcd, 60)
	require.NoError(t, all.Probe(t.Context()))
	c.Follow(nil)
	etcd.now = 55
	require.NoError(t, all.Probe(t.Context()))
	require.True(t, c.RolledBack())
	etcd.now = 100 // nothing shows the rollback any more
	c.Follow(func(string) {})
	proof, err := c.CheckRollback(t.Context(), "50")
	require.NoError(t, err)
	require.Contains(t, proof, "configmaps was recorded up to resource version 60")

	c.Listing(delta.CauseHistoryReversed)
	c.Listed("")
	proof, err = c.CheckRollback(t.Context(), "100")
	require.NoError(t, err)
	require.Empty(t, proof)
}

// The newest versions of the other streams must be checked every ten seconds or so.
func TestAServerThatHangsForManyResourcesDelaysNoProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		server, etcd := &hanging{archive: &archive{now: 900}}, &archive{now: 100}
		hang := func(name string) {
			d, _ := followed(all, name, server.archive, 800)
			d.ListWith(server.lister)
		}
		hang("routes")
		require.NoError(t, all.Probe(t.Context()))
		server.hangs = true
		for i := range groupedPerRound - 1 {
			hang("routes" + strconv.Itoa(i))
		}
		good, _ := followed(all, "configmaps", etcd, 60)
		began := time.Now()
		require.Error(t, all.Probe(t.Context()))
		require.LessOrEqual(t, time.Since(began), 2*askTimeout)
		require.True(t, good.etcd.grouped)
		server.hangs = false
		for range 2 {
			require.NoError(t, all.Probe(t.Context()))
		}
		for _, c := range all.streams {
			require.Equal(t, c != good, knownSameEtcd(c, all.streams[0]))
		}
	})
}

// A stream that recovers finds others in its etcd before the grouping has looked for it.
func TestAnEtcdIsAskedThoughItsFirstStreamIsNotFollowedAnyMore(t *testing.T) {
	etcd := &archive{now: 100}
	all := New(Options{})
	neighbour, notified := followed(all, "configmaps", etcd, 60)
	require.NoError(t, all.Probe(t.Context()))
	gone, _ := followed(all, "widgets", etcd, 50)
	join(gone, neighbour)
	gone.Follow(nil)
	for range 2 {
		require.NoError(t, all.Probe(t.Context()))
	}
	etcd.now = 55
	finds(t, all.Probe, notified, 1)
}

// uncachable is a resource without a cache: it is not there yet, or never will be.
type uncachable struct{ *archive }

func (u *uncachable) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if options.ResourceVersion == "" {
		return nil, apierrors.NewTooManyRequests("storage is (re)initializing", 1)
	}
	return u.archive.ListWithContext(ctx, options)
}

func TestNoListWaitsForAnotherResourceThatIsNotServed(t *testing.T) {
	all := New(Options{})
	etcd := &archive{now: 55}
	finder, _ := followed(all, "widgets", etcd, 60, servedAs("lost", "3", 50))
	c, _ := followed(all, "configmaps", etcd, 60)
	_, err := finder.CheckRollback(t.Context(), "60")
	require.NoError(t, err)
	require.True(t, c.RolledBack())
	finder.ListWith(func(string) cache.ListerWithContext { return &uncachable{etcd} })
	require.Error(t, checkList(t, finder, "55", nil))
	require.NoError(t, checkList(t, c, "55", nil))
}
