package rollback

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
)

func TestAListThatBeganBeforeTheRollbackDoesNotEndIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, server := overtaken(t)
		c.Listed("")
		require.True(t, c.RolledBack())
		require.Error(t, checkList(t, c, "80", server.page()))
	})
}

func TestAStreamThatWasBeingListedFirstIsRolledBackAfterTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 100, versions: []*kube.Object{servedAs("kept", "1", 20)}}
		late, _ := followed(all, "secrets", etcd, 0)
		late.Listing(delta.CauseFirstList)
		late.Shown([]any{servedAs("kept", "1", 20)})
		finder, _ := followed(all, "configmaps", etcd, 60, servedAs("lost", "3", 50))
		_, err := finder.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.True(t, finder.RolledBack())
		late.Listed("")
		late.Reached("60")
		proof, err := late.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.NotEmpty(t, proof)
	})
}

// An aggregated API has an etcd of its own, and is uninstalled after that etcd was put back.
func TestWithoutTheFinderARollbackMayBeOfThisEtcd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		allAdded := make(chan struct{})
		close(allAdded)
		all.allAdded = allAdded
		finder, _ := followed(all, "aggregated", &archive{now: 5}, 60, servedAs("lost", "3", 50))
		_, err := finder.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.True(t, finder.RolledBack())
		finder.ListWith((&archive{fails: apierrors.NewNotFound(schema.GroupResource{Resource: "aggregated"}, "")}).lister)
		finder.Follow(nil)
		late, notified := followed(all, "services", &archive{now: 100, versions: []*kube.Object{servedAs("kept", "1", 20)}}, 60, servedAs("kept", "1", 20))
		late.Recall(Recalled{Position: "60"})
		_, err = late.CheckRollback(t.Context(), "60")
		require.NoError(t, err)
		require.Len(t, *notified, 1)
	})
}

func TestAnUnavailableResourceDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		down := &archive{now: 80}
		c, notified := followed(all, "configmaps", &archive{now: 80, versions: []*kube.Object{servedAs("a", "1", 40), servedAs("c", "4", 75)}}, 10)
		d, _ := followed(all, "routes", down, 10)
		join(c, d)
		for i, o := range []*kube.Object{servedAs("a", "1", 40), servedAs("lost", "3", 56), servedAs("c", "3", 58)} {
			time.Sleep(time.Second)
			c.Saw(o, false)
			if i == 0 {
				d.Saw(servedAs("r", "7", 45), false)
			}
		}
		down.fails = apierrors.NewServiceUnavailable("down")
		_ = all.lookBack(t.Context())
		require.Len(t, *notified, 1)
	})
}

func TestOneStreamAsksWhenManyStreamsMeetARollback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := New(Options{})
		etcd := &archive{now: 5000}
		const many = 60
		var streams []*Stream
		for i := range many {
			c, _ := followed(all, fmt.Sprint(i), etcd, 1)
			if i > 0 {
				join(streams[0], c)
			}
			streams = append(streams, c)
		}
		for i := range 600 {
			time.Sleep(ringEvery)
			o := servedAs(fmt.Sprint("o", i), "1", 1000+i)
			etcd.versions = append(etcd.versions, o)
			streams[i%many].Saw(o, false)
			streams[i%many].Reached(o.ResourceVersion)
		}
		etcd.now, etcd.versions = 1300, etcd.versions[:300]
		before := etcd.asked.Load()
		var running sync.WaitGroup
		errs := make([]error, many)
		for i, c := range streams {
			running.Go(func() { _, errs[i] = c.CheckRollback(t.Context(), "1600") })
		}
		running.Wait()
		for i, err := range errs {
			require.NoError(t, err)
			require.True(t, streams[i].RolledBack())
		}
		require.Less(t, etcd.asked.Load()-before, int64(3*many), "one stream asks for the fork")
	})
}

// The position of a stream is behind its last revision on record, since several deletes can share one revision.
func TestARevisionOnRecordBeyondThePositionWasNotServedHere(t *testing.T) {
	all := New(Options{})
	c, _ := followed(all, "configmaps", &archive{}, 0)
	c.Recall(Recalled{Position: "213", Newest: []string{"214"}})
	require.False(t, c.progress.servedHere(213))
	require.False(t, c.progress.servedHere(214))
	require.True(t, c.progress.servedHere(215))
}

// The filter rules have changed, so a list is due. Etcd was put back when no recorder ran.
func TestAStreamIsCheckedThoughAListIsDueAnyway(t *testing.T) {
	all := New(Options{})
	etcd := &archive{now: 50}
	c, _ := followed(all, "configmaps", etcd, 0)
	proof, err := c.CheckRollback(t.Context(), "")
	require.NoError(t, err)
	require.Empty(t, proof, "nothing is recorded")
	c.Recall(Recalled{Position: "60"})
	proof, err = c.CheckRollback(t.Context(), "")
	require.NoError(t, err)
	require.Contains(t, proof, "which etcd has not reached")
	require.True(t, c.RolledBack())
}
