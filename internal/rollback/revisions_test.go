package rollback

import (
	"context"
	"strconv"
	"sync/atomic"
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
)

// etcdDouble answers two questions: which revision it has reached, and what an object was. A real etcd cannot be
// made to hold another history at the same revisions while the streams stay.
type etcdDouble struct {
	now     int
	objects map[string]string // name by the revision at which it was written
	refused error             // nil: it answers
	byName  atomic.Int64      // how often it was asked for one name
	where   atomic.Int64      // how often it was asked for its revision
}

func (e *etcdDouble) List(options metav1.ListOptions) (runtime.Object, error) {
	return e.ListWithContext(context.Background(), options)
}

func (e *etcdDouble) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if e.refused != nil {
		return nil, e.refused
	}
	if options.FieldSelector == "" {
		e.where.Add(1)
		return &kube.List{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(e.now)}}, nil
	}
	e.byName.Add(1)
	if at, err := strconv.Atoi(options.ResourceVersion); err != nil || at > e.now {
		return nil, apierrors.NewBadRequest("no such revision")
	}
	list := &kube.List{ListMeta: metav1.ListMeta{ResourceVersion: options.ResourceVersion}}
	if name := e.objects[options.ResourceVersion]; options.FieldSelector == "metadata.name="+name {
		list.Items = append(list.Items, written(name, options.ResourceVersion))
	}
	return list, nil
}

func written(name, rv string) *kube.Object {
	return &kube.Object{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, ResourceVersion: rv}}
}

func (e *etcdDouble) lister(string) cache.ListerWithContext { return e }

// listedBy makes an etcd the lister of a stream.
func listedBy(c *Stream, etcd *etcdDouble) *Stream {
	c.ListWith(etcd.lister)
	c.Follow(func(string) {})
	return c
}

func unaccounted(t *testing.T, c *Stream) []uint64 {
	t.Helper()
	rest, err := c.Unaccounted(t.Context(), 100, 105, 10, true)
	require.NoError(t, err)
	return rest
}

// twoStreams returns a stream that asks, and one that has claimed 101, 103 and 104. The last of them is a deletion.
func twoStreams(asked, claimed *etcdDouble) (*Stream, *Stream) {
	all := New(Options{})
	a, b := listedBy(all.Add(Spec{Name: "a"}), asked), listedBy(all.Add(Spec{Name: "b"}), claimed)
	b.Saw(written("x", "101"), false)
	b.Saw(written("y", "103"), false)
	b.Saw(written("x", "104"), true)
	b.Reached("105")
	return a, b
}

func TestRevisionsOfOtherStreamsInTheSameEtcdAreAccountedFor(t *testing.T) {
	etcd := &etcdDouble{now: 110, objects: map[string]string{"101": "x", "103": "y"}}
	a, b := twoStreams(etcd, etcd)
	require.Equal(t, []uint64{102, 104, 105}, unaccounted(t, a), "no claim after the newest living version is proved")
	require.Equal(t, []uint64{101, 102, 103, 104, 105}, unaccounted(t, b), "its own claims are not another stream's")
}

// The claimant's newest living object is older than the stretch. In the stretch, its objects only ended.
func TestAnObjectOlderThanTheStretchProvesNoClaim(t *testing.T) {
	etcd := &etcdDouble{now: 110, objects: map[string]string{"95": "x"}}
	all := New(Options{})
	a, b := listedBy(all.Add(Spec{Name: "a"}), etcd), listedBy(all.Add(Spec{Name: "b"}), etcd)
	b.Saw(written("x", "95"), false)
	for _, rv := range []string{"98", "102"} {
		b.Saw(written("y", rv), false)
		b.Saw(written("y", rv), true)
	}
	b.Reached("105")
	require.Equal(t, []uint64{101, 102, 103, 104, 105}, unaccounted(t, a))
}

func TestRevisionsOnRecordAreAccountedFor(t *testing.T) {
	etcd := &etcdDouble{now: 110, objects: map[string]string{"103": "y"}}
	all := New(Options{})
	a, b := listedBy(all.Add(Spec{Name: "a"}), etcd), listedBy(all.Add(Spec{Name: "b"}), etcd)
	b.Recall(Recalled{Position: "105", Newest: []string{"101", "103"}})
	require.Equal(t, []uint64{101, 102, 103, 104, 105}, unaccounted(t, a), "no object is known that proves the history")
	b.Saw(written("y", "103"), false)
	require.Equal(t, []uint64{102, 104, 105}, unaccounted(t, a))
}

func TestRevisionsOfAnotherEtcdAreNotAccountedFor(t *testing.T) {
	a, _ := twoStreams(&etcdDouble{now: 110}, &etcdDouble{now: 500, objects: map[string]string{"103": "y"}})
	require.Equal(t, []uint64{101, 102, 103, 104, 105}, unaccounted(t, a))
}

func TestRevisionsOfAnOldHistoryAreNotAccountedFor(t *testing.T) {
	for name, restored := range map[string]*etcdDouble{
		"another object":  {now: 110, objects: map[string]string{"103": "z"}},
		"not there again": {now: 102},
	} {
		t.Run(name, func(t *testing.T) {
			a, _ := twoStreams(restored, restored)
			require.Equal(t, []uint64{101, 102, 103, 104, 105}, unaccounted(t, a))
		})
	}
}

func TestRevisionsOfAResourceThatIsNoLongerServedAreNotAccountedFor(t *testing.T) {
	for _, refused := range []error{
		apierrors.NewNotFound(schema.GroupResource{}, ""), apierrors.NewForbidden(schema.GroupResource{}, "", nil), apierrors.NewMethodNotSupported(schema.GroupResource{}, "list"),
	} {
		a, _ := twoStreams(&etcdDouble{now: 110}, &etcdDouble{refused: refused})
		require.Equal(t, []uint64{101, 102, 103, 104, 105}, unaccounted(t, a))
	}
}

// An aggregated API server may come back long after the others.
func TestAResourceThatDoesNotAnswerDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := &etcdDouble{refused: apierrors.NewServiceUnavailable("no endpoints")}
		a, _ := twoStreams(&etcdDouble{now: 110}, away)
		require.Equal(t, []uint64{101, 102, 103, 104, 105}, unaccounted(t, a), "it is not known whether its revisions are of this etcd")

		etcd := &etcdDouble{now: 110, objects: map[string]string{"101": "x", "102": "z", "103": "y"}}
		a, b := twoStreams(etcd, etcd)
		other := listedBy(a.all.Add(Spec{Name: "c"}), etcd)
		other.Saw(written("z", "102"), false)
		require.Equal(t, []uint64{104, 105}, unaccounted(t, a))
		listedBy(b, away)
		require.Equal(t, []uint64{103, 104, 105}, unaccounted(t, a), "another stream proves the history up to there")
		listedBy(other, away)
		_, err := a.Unaccounted(t.Context(), 100, 105, 10, true)
		require.True(t, apierrors.IsServiceUnavailable(err), "a moment later the server may answer, and fewer revisions remain")
	})
}

func TestAStreamWaitsForABusierOneButNotForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &etcdDouble{now: 110, objects: map[string]string{"102": "x"}}
		all := New(Options{})
		idle, busy := listedBy(all.Add(Spec{Name: "idle"}), etcd), listedBy(all.Add(Spec{Name: "busy"}), etcd)
		busy.Saw(written("x", "99"), false)
		time.AfterFunc(time.Second, func() {
			busy.Saw(written("x", "102"), false)
			busy.Reached("105")
		})
		started := time.Now()
		require.Equal(t, []uint64{101, 103, 104, 105}, unaccounted(t, idle))
		require.Equal(t, time.Second, time.Since(started).Truncate(time.Second))

		late := listedBy(all.Add(Spec{Name: "late"}), etcd)
		late.Saw(written("x", "106"), false)
		started = time.Now()
		unaccounted(t, idle)
		require.Equal(t, busierWait, time.Since(started))
		started = time.Now()
		_, err := idle.Unaccounted(t.Context(), 110, 110+2*fewLooks, 1000, true)
		require.NoError(t, err)
		require.Equal(t, busierLongWait, time.Since(started), "longer, if each stream would have to look at many revisions")
		time.AfterFunc(40*time.Second, func() { late.Reached("107") })
		started = time.Now()
		_, err = idle.Unaccounted(t.Context(), 110, 110+2*fewLooks, 1000, true)
		require.NoError(t, err)
		require.Equal(t, 40*time.Second+busierLongWait, time.Since(started), "longer still, while it makes progress")
		late.Watching("")
		started = time.Now()
		unaccounted(t, idle)
		require.Less(t, time.Since(started), 2*acceptedAfter, "a watched stream claims its revisions itself")
	})
}

// A look delays the watch of its stream.
func TestALookWaitsForNoBusierStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &etcdDouble{now: 110, objects: map[string]string{"102": "x"}}
		all := New(Options{})
		idle, busy := listedBy(all.Add(Spec{Name: "idle"}), etcd), listedBy(all.Add(Spec{Name: "busy"}), etcd)
		busy.Saw(written("x", "102"), false)
		busy.Reached("102")
		began := time.Now()
		rest, err := idle.Unaccounted(t.Context(), 100, 105, 1000, false)
		require.NoError(t, err)
		require.Equal(t, []uint64{101, 103, 104, 105}, rest)
		_, err = idle.Unaccounted(t.Context(), 100, 110+2*fewLooks, 1000, false)
		require.ErrorIs(t, err, errBusierBehind, "most of that is about to be claimed")
		require.Zero(t, time.Since(began))
		time.Sleep(busierLongWait)
		_, err = idle.Unaccounted(t.Context(), 100, 110+2*fewLooks, 1000, false)
		require.NoError(t, err, "the busier stream makes no progress")
	})
}

func TestTheNewestRevisionsAreKept(t *testing.T) {
	all := New(Options{})
	c := all.Add(Spec{Name: "c"})
	for revision := range keptRevisions + 10 {
		c.Saw(written("x", strconv.Itoa(revision+1)), false)
	}
	require.LessOrEqual(t, len(c.claims.newest), keptRevisions)
	require.Greater(t, len(c.claims.newest), keptRevisions/2-1)
	require.Equal(t, []uint64{keptRevisions + 9, keptRevisions + 10}, c.claims.within(keptRevisions+8, keptRevisions+20))
	require.Empty(t, c.claims.within(0, 5))
}

func TestTheRevisionsOfOneEtcdDoNotDisplaceThoseOfAnother(t *testing.T) {
	all := New(Options{})
	events, pods := all.Add(Spec{Name: "events"}), all.Add(Spec{Name: "pods"})
	pods.Saw(written("x", "1000000"), false)
	for revision := range keptRevisions + 10 {
		events.Saw(written("e", strconv.Itoa(50_000_000+revision)), false)
	}
	pods.Saw(written("x", "1000001"), false)
	require.Equal(t, []uint64{1000000, 1000001}, pods.claims.within(0, 2000000))
	require.Equal(t, []uint64{1000001}, pods.claims.within(1000000, 1000001))
}

func TestALargeStretchEndsAtTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := &etcdDouble{now: 110, objects: map[string]string{"103": "y"}}
		a, _ := twoStreams(etcd, etcd)
		rest, err := a.Unaccounted(t.Context(), 100, 1<<60, 10, true)
		require.NoError(t, err)
		require.Len(t, rest, 11, "one more than the limit shows that there are more")
	})
}

func TestNoStreamWaitsForOneThatIsNotServed(t *testing.T) {
	for name, end := range map[string]func(*Stream){
		"its run has ended": func(c *Stream) { c.Follow(nil) },
		"it is forbidden":   func(c *Stream) { c.Interrupted(delta.CauseForbidden) },
		"it is gone":        func(c *Stream) { c.Interrupted(delta.CauseNotFound) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all, etcd := New(Options{}), &etcdDouble{now: 200}
				gone, quiet := listedBy(all.Add(Spec{Name: "gone"}), etcd), listedBy(all.Add(Spec{Name: "quiet"}), etcd)
				gone.Saw(written("x", "60"), false)
				gone.Reached("60")
				quiet.Reached("100")
				end(gone)
				began := time.Now()
				require.Len(t, unaccounted(t, quiet), 5)
				require.Zero(t, time.Since(began))

				gone.Follow(func(string) {})
				gone.Watching("")
				gone.Closed(nil)
				unaccounted(t, quiet)
				require.Equal(t, busierWait, time.Since(began), "it is served again")
			})
		})
	}
}

func TestTheEtcdOfAStreamThatIsNotServedIsStillKnown(t *testing.T) {
	all, etcd := New(Options{}), &archive{now: 100}
	gone, _ := followed(all, "gone", etcd, 50)
	followed(all, "stays", etcd, 60)
	require.NoError(t, all.Probe(t.Context()))
	gone.ListWith((&archive{fails: apierrors.NewNotFound(schema.GroupResource{Resource: "gone"}, "")}).lister)
	gone.Follow(nil)
	later, _ := followed(all, "later", etcd, 70)
	require.NoError(t, all.Probe(t.Context()))
	require.Same(t, gone.etcd, later.etcd)
}

func TestAStreamThatIsNotServedIsRolledBackToo(t *testing.T) {
	all, etcd := New(Options{}), &archive{now: 100}
	gone, _ := followed(all, "gone", etcd, 50)
	followed(all, "stays", etcd, 60)
	require.NoError(t, all.Probe(t.Context()))
	gone.Follow(nil)
	etcd.now = 55
	require.NoError(t, all.Probe(t.Context()))
	require.True(t, gone.RolledBack(), "it may come back")
}
