package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kuberewind/kuberewind/bench/data"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newSet(t *testing.T, n int) data.Set {
	t.Helper()
	set, err := data.Generate(data.Settings{Seed: 5, Live: 150, Events: n})
	require.NoError(t, err)
	return set
}

func start(t *testing.T, set data.Set, o Options) (*Server, *rest.Config) {
	t.Helper()
	s, err := Start(set, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Kubeconfig())
	require.NoError(t, err)
	config.QPS = -1
	return s, config
}

func client(t *testing.T, config *rest.Config) dynamic.Interface {
	t.Helper()
	http, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	t.Cleanup(http.CloseIdleConnections)
	c, err := dynamic.NewForConfigAndClient(config, http)
	require.NoError(t, err)
	return c
}

func of(r data.Resource) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
}

// all is a list in pages, and its resource version.
func all(t *testing.T, c dynamic.Interface, r data.Resource) (map[string]string, string) {
	t.Helper()
	found := map[string]string{}
	for next := ""; ; {
		list, err := c.Resource(of(r)).List(t.Context(), metav1.ListOptions{Limit: 7, Continue: next})
		require.NoError(t, err)
		for _, o := range list.Items {
			found[string(o.GetUID())] = canonical(t, o.Object)
		}
		if next = list.GetContinue(); next == "" {
			return found, list.GetResourceVersion()
		}
	}
}

func canonical(t *testing.T, o map[string]any) string {
	t.Helper()
	text, err := json.Marshal(o)
	require.NoError(t, err)
	return string(text)
}

func parsed(t *testing.T, e data.Event) string {
	t.Helper()
	o := map[string]any{}
	require.NoError(t, json.Unmarshal(e.Object, &o))
	return canonical(t, o)
}

// follow reads n events of a resource.
func follow(ctx context.Context, c dynamic.Interface, r data.Resource, rv string, n int) (seen []watch.Event, err error) {
	w, err := c.Resource(of(r)).Watch(ctx, metav1.ListOptions{ResourceVersion: rv})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		if e.Type == watch.Error {
			break
		}
		if seen = append(seen, e); len(seen) == n {
			return seen, nil
		}
	}
	return seen, fmt.Errorf("the watch of %s ended after %d events of %d", r.Resource, len(seen), n)
}

// eventsOf returns the events of a set by resource.
func eventsOf(t *testing.T, set data.Set) [][]data.Event {
	t.Helper()
	all := make([][]data.Event, len(set.Resources()))
	for e, err := range set.Events() {
		require.NoError(t, err)
		all[e.Resource] = append(all[e.Resource], e)
	}
	return all
}

func TestListsAndWatchesGiveTheSet(t *testing.T) {
	const n = 300
	set := newSet(t, n)
	s, config := start(t, set, Options{Window: 50})
	c := client(t, config)

	living := map[string]string{}
	for e := range set.First() {
		living[e.UID] = parsed(t, e)
	}
	events := eventsOf(t, set)
	watches := make([]func() error, len(events))
	seen := make([][]watch.Event, len(events))
	var group errgroup.Group
	for i, r := range set.Resources() {
		listed, rv := all(t, c, r)
		for uid, text := range listed {
			require.Equal(t, living[uid], text)
		}
		watches[i] = func() (err error) {
			seen[i], err = follow(t.Context(), c, r, rv, len(events[i]))
			return err
		}
		if len(events[i]) > 0 {
			group.Go(watches[i])
		}
	}
	require.Eventually(t, func() bool { return s.Progress().Watched }, 5*time.Minute, time.Millisecond)
	require.Zero(t, s.Progress().Written, "nothing is written before Go")
	s.Go()
	require.NoError(t, group.Wait())
	for i := range events {
		for n, e := range seen[i] {
			text := parsed(t, events[i][n])
			require.Equal(t, events[i][n].Type, e.Type)
			require.Equal(t, text, canonical(t, e.Object.(*unstructured.Unstructured).Object))
			if living[events[i][n].UID] = text; e.Type == watch.Deleted {
				delete(living, events[i][n].UID)
			}
		}
	}
	require.Equal(t, Progress{Watched: s.Progress().Watched, Written: n, Events: n}, s.Progress())
	require.Len(t, s.Times(), n)

	// The end of the history is listed as it was watched; from anywhere on, the rest can be watched again.
	for i, r := range set.Resources() {
		listed, _ := all(t, c, r)
		for uid, text := range listed {
			require.Equal(t, living[uid], text)
			delete(living, uid)
		}
		if half := len(events[i]) / 2; half > 0 && events[i][half].RV > events[i][half-1].RV {
			again, err := follow(t.Context(), c, r, strconv.FormatUint(events[i][half-1].RV, 10), len(events[i])-half)
			require.NoError(t, err)
			require.Equal(t, seen[i][half:], again)
		}
	}
	require.Empty(t, living)
}

// The request of client-go's informers, if a server takes it.
func TestAWatchWithInitialEventsGivesWhatAListGives(t *testing.T) {
	set := newSet(t, 200)
	s, config := start(t, set, Options{Rate: 5000})
	c := client(t, config)
	pods := set.Resources()[3]
	events := eventsOf(t, set)[3]
	yes := true
	initial := func(rv string) (watch.Interface, error) {
		return c.Resource(of(pods)).Watch(t.Context(), metav1.ListOptions{
			SendInitialEvents: &yes, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan, AllowWatchBookmarks: true, ResourceVersion: rv,
		})
	}
	first, rv := all(t, c, pods)
	w, err := initial("")
	require.NoError(t, err)
	defer w.Stop()
	for range first {
		e := <-w.ResultChan()
		o := e.Object.(*unstructured.Unstructured)
		require.Equal(t, watch.Added, e.Type)
		require.Equal(t, first[string(o.GetUID())], canonical(t, o.Object))
	}
	e := <-w.ResultChan()
	require.Equal(t, watch.Bookmark, e.Type)
	require.Equal(t, rv, e.Object.(*unstructured.Unstructured).GetResourceVersion())
	require.Equal(t, "true", e.Object.(*unstructured.Unstructured).GetAnnotations()[metav1.InitialEventsAnnotationKey])

	s.Go()
	for _, want := range events {
		e := <-w.ResultChan()
		require.Equal(t, want.Type, e.Type)
		require.Equal(t, parsed(t, want), canonical(t, e.Object.(*unstructured.Unstructured).Object))
	}
	_, err = initial("9999999")
	require.ErrorContains(t, err, "Too large resource version")
}

func TestAtARateEventsComeWhenTheyAreDue(t *testing.T) {
	const rate = 500
	set := newSet(t, 300)
	s, config := start(t, set, Options{Rate: rate})
	c := client(t, config)
	const leases = 7
	_, rv := all(t, c, set.Resources()[leases])
	n := len(eventsOf(t, set)[leases])
	from := time.Now()
	s.Go()
	_, err := follow(t.Context(), c, set.Resources()[leases], rv, n)
	require.NoError(t, err)
	times := s.Times()
	require.Len(t, times, n, "of a resource that nobody watches nothing is sent")
	count, first, lease := 0, 0, 0
	for e, err := range set.Events() {
		require.NoError(t, err)
		if e.Resource == leases {
			if lease == 0 {
				first = count
			}
			require.GreaterOrEqual(t, times[lease].At, from.Add(time.Duration(count)*time.Second/rate).UnixNano(), "none is early")
			require.InDelta(t, (time.Duration(count-first) * time.Second / rate).Nanoseconds(), times[lease].At-times[0].At, 1000, "one that is late counts from when it was due")
			lease++
		}
		count++
	}
}

func TestAtAHighRateNoEventIsForgotten(t *testing.T) {
	const leases = 7
	set := newSet(t, 5000)
	s, config := start(t, set, Options{Rate: 9973})
	c := client(t, config)
	_, rv := all(t, c, set.Resources()[leases])
	s.Go()
	_, err := follow(t.Context(), c, set.Resources()[leases], rv, len(eventsOf(t, set)[leases]))
	require.NoError(t, err)
}

func TestEventsBehindTheGateWaitForTheSecondGo(t *testing.T) {
	const n, gate = 900, 500
	set := newSet(t, n)
	s, config := start(t, set, Options{Gate: gate})
	c := client(t, config)
	events := eventsOf(t, set)
	var group errgroup.Group
	for i, r := range set.Resources() {
		if _, rv := all(t, c, r); len(events[i]) > 0 {
			group.Go(func() error {
				_, err := follow(t.Context(), c, r, rv, len(events[i]))
				return err
			})
		}
	}
	require.Eventually(t, func() bool { return s.Progress().Watched }, 5*time.Minute, time.Millisecond)
	s.Go()
	require.Eventually(t, func() bool { return s.Progress().Written >= gate }, 5*time.Minute, time.Millisecond)
	require.Equal(t, gate, s.Progress().Written)
	opened := time.Now().UnixNano()
	s.Go()
	require.NoError(t, group.Wait())
	before := make([]int, len(events)) // of each resource
	i := 0
	for e, err := range set.Events() {
		require.NoError(t, err)
		if i++; i <= gate {
			before[e.Resource]++
		}
	}
	seen := make([]int, len(events))
	times := s.Times()
	require.Len(t, times, n)
	for _, e := range times {
		require.Equal(t, seen[e.Resource] >= before[e.Resource], e.At >= opened, "event %d of %s", seen[e.Resource], set.Resources()[e.Resource].Resource)
		seen[e.Resource]++
	}
}

func TestAGateIsBetweenTwoWrites(t *testing.T) {
	set := newSet(t, 3000)
	i, shared, rv := 0, 0, uint64(0)
	for e, err := range set.Events() {
		require.NoError(t, err)
		if e.RV == rv {
			shared = i
		}
		i, rv = i+1, e.RV
	}
	require.Positive(t, shared)
	_, err := Start(set, Options{Gate: shared})
	require.ErrorContains(t, err, "one write")
	_, err = Start(set, Options{Gate: 1, Rate: 10})
	require.ErrorContains(t, err, "at a rate")
}

func TestAChildEndsWithItsStandardInput(t *testing.T) {
	in, ask := io.Pipe()
	said, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Child(t.Context(), json.NewDecoder(in), out) }()
	job := Job{Source: data.Source{Settings: data.Settings{Live: 100, Events: 10}}, Options: Options{Dir: t.TempDir()}}
	require.NoError(t, json.NewEncoder(ask).Encode(job))
	var greeting hello
	require.NoError(t, json.NewDecoder(said).Decode(&greeting))
	require.NoError(t, said.Close()) // the rest is not read
	select {
	case err := <-ended:
		require.Fail(t, "it has ended although its standard input is open", "%v", err)
	default:
	}
	require.NoError(t, ask.Close())
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(5 * time.Minute):
		require.Fail(t, "it has outlived the one who started it")
	}
}

func TestAServerSaysWhatItHas(t *testing.T) {
	set := newSet(t, 10)
	_, config := start(t, set, Options{})
	http, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	defer http.CloseIdleConnections()
	d, err := discovery.NewDiscoveryClientForConfigAndClient(config, http)
	require.NoError(t, err)
	_, lists, err := d.ServerGroupsAndResources()
	require.NoError(t, err)
	found := 0
	for _, list := range lists {
		found += len(list.APIResources)
	}
	require.Equal(t, len(set.Resources()), found)
	version, err := d.ServerVersion()
	require.NoError(t, err)
	require.NotEmpty(t, version.GitVersion)

	c := client(t, config)
	namespace, err := c.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}).Get(t.Context(), "kube-system", metav1.GetOptions{})
	require.NoError(t, err)
	require.Equal(t, ClusterUID, namespace.GetUID())
	pods := c.Resource(of(set.Resources()[3]))
	_, err = pods.Namespace("default").Get(t.Context(), "none", metav1.GetOptions{})
	require.ErrorContains(t, err, "not found")
	_, err = pods.List(t.Context(), metav1.ListOptions{ResourceVersion: "9999999"})
	require.ErrorContains(t, err, "Too large resource version: 9999999, current: ")
	_, err = pods.Watch(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	require.ErrorContains(t, err, "too old resource version")
}

func TestAWatchHasBookmarksWhenItIsQuiet(t *testing.T) {
	set := newSet(t, 0)
	_, config := start(t, set, Options{Bookmarks: time.Millisecond})
	c := client(t, config)
	_, rv := all(t, c, set.Resources()[3])
	w, err := c.Resource(of(set.Resources()[3])).Watch(t.Context(), metav1.ListOptions{ResourceVersion: rv, AllowWatchBookmarks: true})
	require.NoError(t, err)
	defer w.Stop()
	e := <-w.ResultChan()
	require.Equal(t, watch.Bookmark, e.Type)
	require.Equal(t, rv, e.Object.(*unstructured.Unstructured).GetResourceVersion())
}
