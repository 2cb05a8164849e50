package history

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
)

var (
	podsV1  = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	nodesV1 = schema.GroupVersionResource{Version: "v1", Resource: "nodes"}
	tapeAt  = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
)

// A tape is a record in memory. It has one delta each minute. A delta's resource version is its seq times ten.
type tape struct {
	t        *testing.T
	streams  []Stream
	versions []Version
	damaged  map[int64]error
	broken   error
}

func newTape(t *testing.T) *tape {
	return &tape{t: t, damaged: make(map[int64]error), streams: []Stream{
		{ID: 1, Resource: "pods", Version: "v1", Kind: "Pod", Namespaced: true},
		{ID: 2, Resource: "nodes", Version: "v1", Kind: "Node"},
	}}
}

// add records a delta of "namespace/name" (a Pod) or "name" (a Node), with labels app=<app>.
func (r *tape) add(kind delta.Type, key, app string, change ...func(*Version)) *tape {
	r.t.Helper()
	seq := int64(len(r.versions) + 1)
	v := Version{Delta: Delta{Seq: seq, ObjectID: seq, Stream: &r.streams[1], Name: key, Type: kind, Source: "watch", RV: fmt.Sprint(seq * 10)}}
	metadata := map[string]any{"name": key}
	if namespace, name, ok := strings.Cut(key, "/"); ok {
		v.Stream, v.Namespace, v.Name = &r.streams[0], namespace, name
		metadata = map[string]any{"name": name, "namespace": namespace}
	}
	for i := range r.versions {
		if old := &r.versions[i]; old.Namespace == v.Namespace && old.Name == v.Name && old.Stream == v.Stream {
			v.ObjectID, v.Before = old.ObjectID, old.Doc
			if old.Type == delta.Deleted {
				v.ObjectID, v.Before = seq, nil
			}
		}
	}
	v.UID = fmt.Sprintf("uid-%d", v.ObjectID)
	v.ObservedAt, v.OccurredAt = tapeAt.Add(time.Duration(seq)*time.Minute), tapeAt.Add(time.Duration(seq)*time.Minute)
	metadata["uid"], metadata["resourceVersion"] = v.UID, v.RV
	if app != "" {
		metadata["labels"] = map[string]any{"app": app}
	}
	text, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": v.Stream.Kind, "metadata": metadata})
	require.NoError(r.t, err)
	v.Doc, err = patch.Canonical(text)
	require.NoError(r.t, err)
	for _, c := range change {
		c(&v)
	}
	r.versions = append(r.versions, v)
	return r
}

// unchanged makes the version a Sync of the known state.
func unchanged(v *Version) { v.Doc, v.Source = v.Before, "resync" }

// inferred makes the version a deletion that a list showed.
func inferred(v *Version) { v.Doc, v.Source = v.Before, "inferred" }

func (r *tape) Streams(context.Context) ([]Stream, error) { return r.streams, r.broken }

func (r *tape) Resolve(_ context.Context, at Instant, scope Scope) (Point, error) {
	p := Point{Instant: at, Time: tapeAt, recorded: tapeAt.Add(time.Duration(len(r.versions)) * time.Minute)}
	if at.RV() == "1" {
		return p, &BeforeRecordError{Instant: at, FirstAt: tapeAt, FirstSeq: 1}
	}
	for i := range r.versions {
		v := &r.versions[i]
		in := at.IsNow() || at.kind == instantSeq && v.Seq <= at.n || at.kind == instantTime && v.ObservedAt.UnixNano() <= at.n
		if at.RV() != "" {
			in = !delta.Precedes(at.RV(), v.RV) && slices.Contains(scope.Streams, v.Stream.ID)
		}
		if in {
			p.Seq, p.Time = v.Seq, v.ObservedAt
		}
	}
	if at.RV() != "" {
		p.RV, p.streams = at.RV(), make(map[int32]streamPoint)
		for _, id := range scope.Streams {
			p.streams[id] = streamPoint{seq: p.Seq, from: p.Seq + 1, sure: p.Seq}
		}
	}
	return p, r.broken
}

func (r *tape) StreamRV(_ context.Context, p Point, stream int32) (rv string, err error) {
	for i := range r.versions {
		if v := &r.versions[i]; v.Seq <= p.Seq && v.Stream.ID == stream {
			rv = delta.Later(rv, v.RV)
		}
	}
	return rv, nil
}

func (r *tape) Rebuild(_ context.Context, p Point, scope Scope, _ RebuildOptions, emit func(Object) error) (RebuildStats, error) {
	live := make(map[int64]*Version)
	for i := range r.versions {
		v := &r.versions[i]
		if v.Seq > p.Seq && (v.Seq > p.Until || v.OccurredAt.After(p.Time)) || !slices.Contains(scope.Streams, v.Stream.ID) {
			continue
		}
		if live[v.ObjectID] = v; v.Type == delta.Deleted {
			delete(live, v.ObjectID)
		}
	}
	for v := range maps.Values(live) { // in no order
		if scope.Namespace != "" && scope.Namespace != v.Namespace {
			continue
		}
		if err := emit(Object{ObjectID: v.ObjectID, Seq: v.Seq, Stream: v.Stream, Namespace: v.Namespace, Name: v.Name, UID: v.UID, RV: v.RV, Doc: v.Doc}); err != nil {
			return RebuildStats{}, err
		}
	}
	return RebuildStats{}, r.broken
}

func (r *tape) Deltas(ctx context.Context, q Query) iter.Seq2[Delta, error] {
	return func(yield func(Delta, error) bool) {
		for v, err := range r.Versions(ctx, q) {
			if !yield(v.Delta, err) {
				return
			}
		}
	}
}

func (r *tape) Versions(_ context.Context, q Query) iter.Seq2[Version, error] {
	return func(yield func(Version, error) bool) {
		for i := range r.versions {
			v := r.versions[i]
			if v.Seq < q.FromSeq || v.Seq > q.ToSeq || !slices.Contains(q.Streams, v.Stream.ID) || (q.Namespace != "" && q.Namespace != v.Namespace) {
				continue
			}
			var err error
			if r.damaged[v.Seq] != nil {
				v.Doc, err = nil, &DamagedError{Seq: v.Seq, ObjectID: v.ObjectID, Name: v.Name, Err: r.damaged[v.Seq]}
			}
			if !yield(v, err) {
				return
			}
		}
	}
}

// eventText returns an event as TYPE name@rv.
func eventText(e watch.Event) string {
	if s, ok := e.Object.(*metav1.Status); ok {
		return fmt.Sprintf("%s %s: %s", e.Type, s.Reason, s.Message)
	}
	o := e.Object.(metav1.Object)
	return strings.TrimSpace(fmt.Sprintf("%s %s@%s", e.Type, o.GetName(), o.GetResourceVersion()))
}

// play receives n events of a watch.
func play(t *testing.T, w watch.Interface, n int) []string {
	t.Helper()
	events := make([]string, 0, n)
	for range n {
		e, ok := <-w.ResultChan()
		require.True(t, ok, "the watch ended after %v", events)
		events = append(events, eventText(e))
	}
	return events
}

func listed(t *testing.T, l *ListWatch, options metav1.ListOptions) (names []string, rv string) {
	t.Helper()
	list, err := l.List(options)
	require.NoError(t, err)
	for _, item := range list.(*unstructured.UnstructuredList).Items {
		names = append(names, item.GetName()+"@"+item.GetResourceVersion())
	}
	return names, list.(*unstructured.UnstructuredList).GetResourceVersion()
}

func watched(t *testing.T, l *ListWatch, options metav1.ListOptions) watch.Interface {
	t.Helper()
	w, err := l.Watch(options)
	require.NoError(t, err)
	t.Cleanup(w.Stop)
	return w
}

func TestAListShowsAnInstantAndAWatchContinuesFromIt(t *testing.T) {
	r := newTape(t).
		add(delta.Sync, "shop/web", "").add(delta.Sync, "shop/db", "").add(delta.Sync, "node-1", "").
		add(delta.Updated, "shop/db", "").         // 4
		add(delta.Added, "shop/new", "").          // 5
		add(delta.Deleted, "shop/web", "").        // 6
		add(delta.Sync, "shop/db", "", unchanged). // 7
		add(delta.Sync, "shop/db", "v2").          // 8
		add(delta.Sync, "shop/late", "").          // 9
		add(delta.Deleted, "shop/new", "", inferred).
		add(delta.Added, "shop/web", "")
	l := newListWatch(r, ListWatchOptions{Resource: podsV1, PlayerOptions: PlayerOptions{From: AtSeq(3)}})
	names, rv := listed(t, l, metav1.ListOptions{ResourceVersion: "0"})
	require.Equal(t, []string{"db@20", "web@10"}, names)
	require.Equal(t, "20", rv)
	require.Equal(t, tapeAt.Add(3*time.Minute), l.Player().Now())

	w := watched(t, l, metav1.ListOptions{ResourceVersion: rv, AllowWatchBookmarks: true})
	require.Equal(t, []string{
		"MODIFIED db@40", "ADDED new@50", "DELETED web@60", "MODIFIED db@80", "ADDED late@90", "DELETED new@100", "ADDED web@110", "BOOKMARK @110",
	}, play(t, w, 8))
	require.NoError(t, l.Wait(t.Context()))
	require.NoError(t, l.Player().Wait(t.Context()))
	<-l.Done()
	require.Equal(t, int64(2+7), l.Delivered())
	require.Equal(t, 9*time.Minute, l.Player().Since(tapeAt.Add(2*time.Minute)))
	select {
	case e, ok := <-w.ResultChan():
		require.Fail(t, "the watch stays open", "%v %v", e, ok)
	default:
	}
	w.Stop()
	_, ok := <-w.ResultChan()
	require.False(t, ok)
}

func TestADeletionCarriesTheLastStateWithItsOwnResourceVersion(t *testing.T) {
	r := newTape(t).add(delta.Added, "shop/a", "web").add(delta.Deleted, "shop/a", "", inferred)
	l := newListWatch(r, ListWatchOptions{Resource: podsV1, PlayerOptions: PlayerOptions{From: AtSeq(1)}})
	w := watched(t, l, metav1.ListOptions{ResourceVersion: "10"})
	e := <-w.ResultChan()
	require.Equal(t, watch.Deleted, e.Type)
	o := e.Object.(*unstructured.Unstructured)
	require.Equal(t, "20", o.GetResourceVersion())
	require.Equal(t, "web", o.GetLabels()["app"])
	require.Equal(t, "uid-1", string(o.GetUID()))
}

func TestSelectorsBoundListsAndWatches(t *testing.T) {
	r := newTape(t).
		add(delta.Added, "shop/a", "web").add(delta.Added, "shop/b", "db").add(delta.Added, "other/c", "web").
		add(delta.Updated, "shop/a", "db").  // 4: the selector app=web no longer matches
		add(delta.Updated, "shop/b", "web"). // 5: it matches now
		add(delta.Updated, "other/c", "web").
		add(delta.Deleted, "shop/a", "db").
		add(delta.Deleted, "shop/b", "web")
	l := newListWatch(r, ListWatchOptions{Resource: podsV1, PlayerOptions: PlayerOptions{From: AtSeq(3)}})
	web := metav1.ListOptions{LabelSelector: "app=web"}
	names, rv := listed(t, l, web)
	require.Equal(t, []string{"c@30", "a@10"}, names)
	web.ResourceVersion = rv
	require.Equal(t, []string{"DELETED a@40", "ADDED b@50", "MODIFIED c@60", "DELETED b@80"}, play(t, watched(t, l, web), 4))

	only := metav1.ListOptions{FieldSelector: "metadata.namespace=shop,metadata.name!=a"}
	names, _ = listed(t, l, only)
	require.Equal(t, []string{"b@20"}, names)
	inNamespace := newListWatch(r, ListWatchOptions{Resource: podsV1, Namespace: "other", PlayerOptions: PlayerOptions{From: AtSeq(3)}})
	names, rv = listed(t, inNamespace, metav1.ListOptions{})
	require.Equal(t, []string{"c@30"}, names)
	require.Equal(t, []string{"MODIFIED c@60", "BOOKMARK @80"}, play(t, watched(t, inNamespace, metav1.ListOptions{ResourceVersion: rv, AllowWatchBookmarks: true}), 2))

	for _, bad := range []metav1.ListOptions{{LabelSelector: "a in"}, {FieldSelector: "status.phase=Running"}, {FieldSelector: "x"}} {
		_, err := l.List(bad)
		require.True(t, apierrors.IsBadRequest(err), "%v", err)
		_, err = l.Watch(bad)
		require.True(t, apierrors.IsBadRequest(err), "%v", err)
	}
}

func TestAWatchBeginsAtAnyResourceVersion(t *testing.T) {
	r := newTape(t)
	for range 3 {
		r.add(delta.Added, "shop/a", "").add(delta.Updated, "shop/a", "").add(delta.Deleted, "shop/a", "")
	}
	l := newListWatch(r, ListWatchOptions{Resource: podsV1, PlayerOptions: PlayerOptions{From: AtSeq(2)}})
	events := []string{"DELETED a@30", "ADDED a@40", "MODIFIED a@50", "DELETED a@60", "ADDED a@70", "MODIFIED a@80", "DELETED a@90"}
	require.Equal(t, append([]string{"ADDED a@20"}, events...), play(t, watched(t, l, metav1.ListOptions{}), 8), "without a resource version, with the existing objects")
	for i, rv := range []string{"20", "30", "40", "50", "60", "70", "80"} {
		require.Equal(t, events[i:], play(t, watched(t, l, metav1.ListOptions{ResourceVersion: rv}), len(events)-i), "from %s", rv)
	}
	names, rv := listed(t, l, metav1.ListOptions{ResourceVersion: "50"})
	require.Equal(t, []string{"a@50"}, names, "a list with a resource version shows that moment")
	require.Equal(t, "50", rv)

	_, err := l.Watch(metav1.ListOptions{ResourceVersion: "1"})
	require.True(t, apierrors.IsResourceExpired(err), "%v", err)
	_, err = l.List(metav1.ListOptions{ResourceVersion: "91"})
	require.True(t, apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge), "%v", err)
	_, err = l.Watch(metav1.ListOptions{ResourceVersion: "x"})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	_, err = l.Watch(metav1.ListOptions{SendInitialEvents: new(bool)})
	require.True(t, apierrors.IsBadRequest(err), "%v", err)
	require.NoError(t, l.Wait(t.Context()), "a refused request does not fail the play")
}

func TestUntilEndsThePlay(t *testing.T) {
	r := newTape(t).add(delta.Added, "shop/a", "").add(delta.Updated, "shop/a", "").add(delta.Updated, "shop/a", "").add(delta.Deleted, "shop/a", "")
	l := newListWatch(r, ListWatchOptions{Resource: podsV1, PlayerOptions: PlayerOptions{From: At(tapeAt), Until: AtRV("30")}})
	names, rv := listed(t, l, metav1.ListOptions{})
	require.Empty(t, names)
	require.Empty(t, rv)
	require.Equal(t, []string{"ADDED a@10", "MODIFIED a@20", "MODIFIED a@30", "BOOKMARK @30"}, play(t, watched(t, l, metav1.ListOptions{ResourceVersion: rv, AllowWatchBookmarks: true}), 4))
	require.Equal(t, []string{"BOOKMARK @30"}, play(t, watched(t, l, metav1.ListOptions{ResourceVersion: "30", AllowWatchBookmarks: true}), 1))
}

func TestARecoveredDeltaOfTheInstantIsListedAndNotWatched(t *testing.T) {
	occurred := func(minute int) func(*Version) {
		return func(v *Version) { v.OccurredAt = tapeAt.Add(time.Duration(minute) * time.Minute) }
	}
	r := newTape(t).add(delta.Added, "shop/a", "").
		add(delta.Updated, "shop/a", "", occurred(1)).add(delta.Added, "shop/b", "", occurred(2)).add(delta.Updated, "shop/b", "")
	l := newListWatch(&pausedTape{r}, ListWatchOptions{Resource: podsV1, PlayerOptions: PlayerOptions{From: AtSeq(1)}})
	names, rv := listed(t, l, metav1.ListOptions{})
	require.Equal(t, []string{"a@20"}, names)
	require.Equal(t, []string{"ADDED b@30", "MODIFIED b@40"}, play(t, watched(t, l, metav1.ListOptions{ResourceVersion: rv}), 2))
}

// A pausedTape recovered the deltas after seq 1 up to seq 4 after a pause.
type pausedTape struct{ *tape }

func (r *pausedTape) Resolve(ctx context.Context, at Instant, scope Scope) (Point, error) {
	p, err := r.tape.Resolve(ctx, at, scope)
	if p.Seq == 1 {
		p.Until = 4
	}
	return p, err
}

// mixed returns a tape on which Pods and Nodes take turns.
func mixed(t *testing.T, n int) *tape {
	r := newTape(t)
	for i := range n {
		r.add(delta.Added, fmt.Sprintf("shop/pod-%d", i), "").add(delta.Added, fmt.Sprintf("node-%d", i), "")
	}
	return r
}

func TestEventsOfSeveralResourcesComeInRecordOrder(t *testing.T) {
	r := mixed(t, 50)
	p := newPlayer(r, PlayerOptions{From: At(tapeAt)})
	pods := newListWatch(r, ListWatchOptions{Resource: podsV1, Player: p})
	nodes := newListWatch(r, ListWatchOptions{Resource: nodesV1, Player: p})
	first := watched(t, pods, metav1.ListOptions{})
	select {
	case e := <-first.ResultChan():
		require.Fail(t, "no event comes before all ListWatches are watched", eventText(e))
	default:
	}
	second := watched(t, nodes, metav1.ListOptions{})
	var got, want []string
	for len(got) < 100 { // Only one can be ready at any moment.
		select {
		case e := <-first.ResultChan():
			got = append(got, eventText(e))
		case e := <-second.ResultChan():
			got = append(got, eventText(e))
		}
		v := &r.versions[len(want)]
		want = append(want, fmt.Sprintf("ADDED %s@%s", v.Name, v.RV))
	}
	require.Equal(t, want, got)
	require.NoError(t, p.Wait(t.Context()))
}

func TestThePlayerDoesNotWaitForAStoppedWatch(t *testing.T) {
	r := mixed(t, 3)
	p := newPlayer(r, PlayerOptions{From: At(tapeAt)})
	pods := newListWatch(r, ListWatchOptions{Resource: podsV1, Player: p})
	nodes := newListWatch(r, ListWatchOptions{Resource: nodesV1, Player: p})
	first, second := watched(t, pods, metav1.ListOptions{}), watched(t, nodes, metav1.ListOptions{})
	require.Equal(t, []string{"ADDED pod-0@10"}, play(t, first, 1))
	require.Equal(t, []string{"ADDED node-0@20"}, play(t, second, 1))
	first.Stop()
	require.Equal(t, []string{"ADDED node-1@40", "ADDED node-2@60"}, play(t, second, 2))
	require.NoError(t, nodes.Wait(t.Context()))
	require.Equal(t, []string{"ADDED pod-1@30", "ADDED pod-2@50"}, play(t, watched(t, pods, metav1.ListOptions{ResourceVersion: "10"}), 2))
	require.NoError(t, p.Wait(t.Context()))
}

func TestSpeedScalesTheTimeOfTheRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newTape(t).add(delta.Added, "shop/a", "").add(delta.Updated, "shop/a", "").add(delta.Added, "node-1", "").add(delta.Updated, "shop/a", "").add(delta.Updated, "node-1", "")
		p := newPlayer(r, PlayerOptions{From: AtSeq(1), Speed: 60})
		pods := newListWatch(r, ListWatchOptions{Resource: podsV1, Player: p})
		nodes := newListWatch(r, ListWatchOptions{Resource: nodesV1, Player: p})
		begin := time.Now()
		_, rv := listed(t, pods, metav1.ListOptions{})
		first, second := watched(t, pods, metav1.ListOptions{ResourceVersion: rv}), watched(t, nodes, metav1.ListOptions{})
		at := func(w watch.Interface, seconds int) {
			t.Helper()
			play(t, w, 1)
			require.Equal(t, time.Duration(seconds)*time.Second, time.Since(begin))
			require.Equal(t, tapeAt.Add(time.Duration(seconds+1)*time.Minute), p.Now())
		}
		at(first, 1)
		at(second, 2)
		at(first, 3)
		at(second, 4)
		require.NoError(t, p.Wait(t.Context()))
		first.Stop()
		second.Stop()
	})
}

func TestACancelledContextEndsAWaitingWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mixed(t, 2)
		l := newListWatch(r, ListWatchOptions{Resource: podsV1, PlayerOptions: PlayerOptions{From: At(tapeAt), Speed: 1e-6}})
		ctx, cancel := context.WithCancel(t.Context())
		w, err := l.WatchWithContext(ctx, metav1.ListOptions{})
		require.NoError(t, err)
		synctest.Wait()
		cancel()
		_, ok := <-w.ResultChan()
		require.False(t, ok)
		w.Stop()
		w.Stop()
		require.ErrorIs(t, l.Wait(ctx), context.Canceled)
	})
}

func TestADamagedRowEndsTheWatchOrIsReported(t *testing.T) {
	damaged := func() *tape {
		r := newTape(t).add(delta.Added, "shop/a", "").add(delta.Updated, "shop/a", "").add(delta.Added, "shop/b", "").add(delta.Deleted, "shop/a", "")
		r.damaged[2], r.damaged[4] = ErrDigest, ErrDigest
		return r
	}
	l := newListWatch(damaged(), ListWatchOptions{Resource: podsV1, PlayerOptions: PlayerOptions{From: AtSeq(1)}})
	w := watched(t, l, metav1.ListOptions{ResourceVersion: "10"})
	require.Equal(t, []string{"ERROR InternalError: seq 2 of object a is damaged: " + ErrDigest.Error()}, play(t, w, 1))
	_, ok := <-w.ResultChan()
	require.False(t, ok)
	require.ErrorIs(t, l.Wait(t.Context()), ErrDigest)

	var seqs []int64
	l = newListWatch(damaged(), ListWatchOptions{Resource: podsV1, PlayerOptions: PlayerOptions{From: AtSeq(1), Damaged: func(d *DamagedError) { seqs = append(seqs, d.Seq) }}})
	require.Equal(t, []string{"ADDED b@30", "DELETED a@40"}, play(t, watched(t, l, metav1.ListOptions{ResourceVersion: "10"}), 2))
	require.NoError(t, l.Wait(t.Context()))
	require.Equal(t, []int64{2, 4}, seqs)
}

func TestListAndWatchSayWhyAResourceIsUnavailable(t *testing.T) {
	r := mixed(t, 1)
	for resource, want := range map[schema.GroupVersionResource]string{
		{Resource: "widgets"}:             "the record has no such resource; it has nodes, pods",
		{Resource: "pods", Version: "v2"}: "it is recorded in version v1, not v2",
		{Group: "apps", Resource: "pods"}: "no such resource",
	} {
		l := newListWatch(r, ListWatchOptions{Resource: resource})
		_, err := l.List(metav1.ListOptions{})
		require.ErrorContains(t, err, want)
		_, err = l.Watch(metav1.ListOptions{})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, l.Wait(t.Context()), want)
	}
	r.broken = errors.New("the database is away")
	l := newListWatch(r, ListWatchOptions{Resource: podsV1})
	_, err := l.List(metav1.ListOptions{})
	require.ErrorIs(t, err, r.broken)
}

func TestAnInformerOfTypedObjectsRunsAgainstTheRecord(t *testing.T) {
	r := mixed(t, 20).add(delta.Deleted, "shop/pod-3", "").add(delta.Updated, "shop/pod-4", "web")
	l := newListWatch(r, ListWatchOptions{Resource: podsV1, PlayerOptions: PlayerOptions{From: AtSeq(11)}, Decoder: scheme.Codecs.UniversalDeserializer()})
	informer := cache.NewSharedIndexInformer(l, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	var mu sync.Mutex
	var seen []string
	calls := make(chan struct{}, 100)
	note := func(what string, object any) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, what+" "+object.(*corev1.Pod).Name)
		calls <- struct{}{}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { note("add", o) },
		UpdateFunc: func(_, o any) { note("update", o) },
		DeleteFunc: func(o any) { note("delete", o) },
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	require.NoError(t, l.Wait(t.Context()))
	for range l.Delivered() {
		<-calls
	}
	mu.Lock()
	require.Len(t, seen, 20+2)
	require.Equal(t, []string{"delete pod-3", "update pod-4"}, seen[20:])
	mu.Unlock()
	require.Len(t, informer.GetStore().ListKeys(), 19)
	object, _, _ := informer.GetIndexer().GetByKey("shop/pod-4")
	require.Equal(t, "420", object.(*corev1.Pod).ResourceVersion)
	require.Equal(t, "420", informer.LastSyncResourceVersion())
	cancel()
	running.Wait()

	_, err = newListWatch(r, ListWatchOptions{Resource: podsV1, Decoder: refusing{}}).List(metav1.ListOptions{})
	require.ErrorIs(t, err, errRefused)
}

type refusing struct{}

var errRefused = errors.New("refused")

func (refusing) Decode([]byte, *schema.GroupVersionKind, runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	return nil, nil, errRefused
}

func TestATextThatIsNotAnObjectIsRefused(t *testing.T) {
	for _, text := range []string{"null", "[]", `"{}"`, "", `{"a":1e400}`} {
		_, err := decodeObject(patch.Doc(text))
		require.ErrorContains(t, err, "decode an object", text)
	}
}
