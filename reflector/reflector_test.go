package reflector

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// This table compares the tests of client-go's cache.Reflector with the tests here.
//
//	upstream's behaviour                              here
//	the watch is stopped when the context ends        holds: TestTheWatchIsStopped…
//	no request once the context is over               holds: TestNothingIsAsked…
//	first list "0", relist at the last version        differs: always "", or a list may be older than the record
//	relist from "" when "0" or exact has expired      moot: it is always ""
//	pages of 500, WatchListPageSize honoured          holds: TestAListIsReadInPages…
//	unpaged lists at a version, for the watch cache   differs: pages, to bound memory on both sides
//	an expired continue token: whole list             differs: starts over twice in pages, then whole
//	watch from the list's version, with bookmarks     holds: TestAStreamBegins…
//	watch timeout random in [min, 2 min], 5 m at least differs: the caller's timeout is used
//	each event reaches the store, its version kept    holds: TestEveryEvent…
//	UpdateResourceVersion for events and bookmarks    holds: TestEveryEvent…
//	a wrong type or kind or a Table is dropped        differs: the stream stops there, or it is lost silently
//	a store error is logged, the version moves on     differs: I1, TestAStoreError…
//	429 and refused connections: no list, backoff     holds: TestBusy…, TestRefused…
//	in-stream 500: list at once                       differs: the history is requested again first, TestAPoisoned…
//	MaxInternalErrorRetryDuration                     moot: counted per place instead
//	in-stream or HTTP 410: list                       differs: a new connection first
//	each ListAndWatch begins with a list              differs: only if it must
//	resync by period and ShouldResync, error ends it  holds: TestResync…
//	resync runs next to the watch                     differs: on the goroutine that feeds the store
//	WatchList                                         differs: not used, it folds changes
//	the store's transformer for internal stores       moot: there are none; RealFIFO's is tested in seams_test.go
//	a short, empty watch is an error                  holds: TestAWatchThatEndsAtOnce…

func TestASecondReflectorOfTheStoreGoesOnAtTheEndOfTheFirst(t *testing.T) {
	r := NewReflectorWithOptions(newServer(9), &v1.Pod{}, &ledger{}, Options{ResourceVersion: "9"})
	require.Equal(t, "9", r.ResumeResourceVersion())
	require.NoError(t, r.handle(&openWatch{}, watch.Event{Type: watch.Added, Object: pod("a", "10")}))
	require.Equal(t, "10", r.ResumeResourceVersion())
	require.NoError(t, r.handle(&openWatch{}, watch.Event{Type: watch.Deleted, Object: pod("a", "11")}))
	require.Equal(t, "10", r.ResumeResourceVersion(), "more deletes may have the same resource version")
	require.Empty(t, NewReflectorWithOptions(newServer(9), &v1.Pod{}, &ledger{}, Options{}).ResumeResourceVersion())
}

func TestTheTypeIsDescribedAsClientGoDoes(t *testing.T) {
	described := func(example any) string {
		return NewReflector(&cache.ListWatch{}, example, &ledger{}, 0).TypeDescription()
	}
	require.Equal(t, "<unspecified>", described(nil))
	require.Equal(t, "*v1.Pod", described(&v1.Pod{}))
	require.Equal(t, "*unstructured.Unstructured", described(&unstructured.Unstructured{}))
	require.Equal(t, "apps/v1, Kind=Deployment", described(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
	}}))
	named := NewReflectorWithOptions(&cache.ListWatch{}, nil, &ledger{}, Options{TypeDescription: "pods", ResourceVersion: "5"})
	require.Equal(t, "pods", named.TypeDescription())
	require.Equal(t, "pods", named.Name())
	require.Equal(t, "5", named.LastSyncResourceVersion())
}

func TestNothingIsAskedForWhenTheContextIsOver(t *testing.T) {
	s := newServer(5)
	r := NewReflector(s, &v1.Pod{}, &ledger{}, 0)
	stop := make(chan struct{})
	close(stop)
	require.NoError(t, r.ListAndWatch(stop))
	r.Run(stop)
	watches, lists := s.requests()
	require.Empty(t, watches)
	require.Zero(t, lists)
}

func TestTheWatchIsStoppedWhenTheContextEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServer(5)
		stop := start(t, NewReflector(s, &v1.Pod{}, &ledger{}, 0))
		require.Equal(t, 1, s.count(&s.open))
		stop()
		require.Zero(t, s.count(&s.open))
	})
}

func TestAListIsCancelledWithTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := &ledger{}
		lw := &cache.ListWatch{ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.Continue == "" {
				return podList("7", "more", pod("a", "1")), nil
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}, WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (watch.Interface, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}}
		stop := start(t, NewReflector(lw, &v1.Pod{}, store, 0))
		stop()
		require.Equal(t, []string{"begin first_list", "page a@1", "abort"}, store.calls())
	})
}

func TestAStreamBeginsWithAConsistentListAndWatchesFromItsVersion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(5), &ledger{}
		s.write(watch.Added, "a")
		start(t, NewReflector(s, &v1.Pod{}, store, 0))
		require.Equal(t, []string{"begin first_list", "page a@6", "end 6"}, store.calls())
		require.Equal(t, []metav1.ListOptions{{Limit: 500}}, s.listed())
		require.Len(t, s.watched(), 1)
		require.Equal(t, "6", s.watched()[0].ResourceVersion)
		require.True(t, s.watched()[0].AllowWatchBookmarks)
		require.GreaterOrEqual(t, *s.watched()[0].TimeoutSeconds, int64(300))
		require.LessOrEqual(t, *s.watched()[0].TimeoutSeconds, int64(600))
	})
}

func TestAStreamGoesOnFromARecordedVersionWithoutAList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(5), &ledger{}
		s.write(watch.Added, "a")
		s.write(watch.Modified, "a")
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "6"})
		start(t, r)
		require.Equal(t, []string{"update a@7"}, store.calls())
		require.Empty(t, s.listed())
		require.Equal(t, "7", r.LastSyncResourceVersion())
	})
}

func TestEveryEventReachesTheStoreAndThenMovesThePosition(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		var positions []string
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{
			Hooks: Hooks{Position: func(rv string) { positions = append(positions, rv) }},
		})
		start(t, r)
		s.write(watch.Added, "a")
		s.write(watch.Modified, "a")
		s.bookmark()
		s.write(watch.Deleted, "a")
		synctest.Wait()
		require.Equal(t, []string{"begin first_list", "page", "end 9",
			"add a@10", "update a@11", "bookmark 11", "delete a@12"}, store.calls())
		require.Equal(t, []string{"10", "11", "11", "12"}, store.versions)
		require.Equal(t, []string{"9", "10", "11"}, slices.Compact(positions), "another delete of 12 may follow")
		require.Equal(t, "12", r.LastSyncResourceVersion())

		s.bookmark()
		synctest.Wait()
		require.Equal(t, "12", positions[len(positions)-1])
	})
}

func TestAStoreErrorNeverMovesThePosition(t *testing.T) {
	for _, method := range []string{"add", "update", "delete", "bookmark"} {
		t.Run(method, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, failures := newServer(9), 3
				store := &ledger{decide: func(c call) error {
					if c.method == method && failures > 0 {
						failures--
						return errors.New("database is down")
					}
					return nil
				}}
				r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"})
				start(t, r)
				s.write(watch.Added, "a")
				s.write(watch.Modified, "a")
				s.write(watch.Deleted, "a")
				s.elsewhere()
				s.bookmark()
				elapse(time.Minute)
				require.Equal(t, []string{"add a@10", "update a@11", "delete a@12", "bookmark 13"}, store.calls())
				require.Equal(t, "13", r.LastSyncResourceVersion())
				require.Empty(t, s.listed(), "an error of the store must not cost history")
				require.Zero(t, failures)
			})
		})
	}
}

func TestAStoreErrorEndsListAndWatchAndIsReturned(t *testing.T) {
	s, down := newServer(9), errors.New("database is down")
	s.write(watch.Added, "a")
	store := &ledger{decide: func(call) error { return down }}
	r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"})
	err := r.ListAndWatchWithContext(t.Context())
	require.ErrorIs(t, err, down)
	require.ErrorContains(t, err, "add at resource version 10")
	require.Equal(t, "9", r.LastSyncResourceVersion())
}

func TestAStoreThatBlocksAlsoBlocksTheStream(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, room := newServer(9), make(chan struct{})
		store := &ledger{decide: func(c call) error { <-room; return nil }}
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"})
		start(t, r)
		s.write(watch.Added, "a")
		s.write(watch.Added, "b")
		elapse(time.Hour)
		require.Empty(t, store.calls())
		require.Equal(t, "9", r.LastSyncResourceVersion())
		close(room)
		synctest.Wait()
		require.Equal(t, []string{"add a@10", "add b@11"}, store.calls())
	})
}

func TestResyncComesByPeriodUnlessDeclined(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, asked := newServer(9), &ledger{}, 0
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", ResyncPeriod: time.Minute})
		r.ShouldResync = func() bool { asked++; return asked%2 == 0 }
		start(t, r)
		elapse(4*time.Minute + time.Second)
		require.Equal(t, []string{"resync", "resync"}, store.calls())
		require.Equal(t, 4, asked)
	})
}

func TestResyncThatFailsEndsListAndWatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := &ledger{decide: func(call) error { return errors.New("no") }}
		r := NewReflectorWithOptions(newServer(9), &v1.Pod{}, store,
			Options{ResourceVersion: "9", ResyncPeriod: time.Minute})
		require.ErrorContains(t, r.ListAndWatchWithContext(t.Context()), "store: resync: no")
	})
}

func TestPausesGrowWithJitterAndStartOver(t *testing.T) {
	d, now := newDelays(*defaultBackoff()), time.Unix(0, 0)
	for _, milliseconds := range []int{800, 1600, 3200, 6400, 12800, 25600, 30000, 30000, 30000} {
		least, delay := time.Duration(milliseconds)*time.Millisecond, d.next(now)
		require.GreaterOrEqual(t, delay, least)
		require.LessOrEqual(t, delay, 2*least)
		now = now.Add(delay + time.Second)
	}
	now = now.Add(backoffReset)
	require.Less(t, d.next(now), 2*time.Second)
}

func TestRefusedConnectionsAreRetriedAtTheSamePlaceByTheGivenBackoff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		failures := 5
		s.onWatch = func(metav1.ListOptions) watchPlan {
			if failures--; failures >= 0 {
				return watchPlan{refuse: refused()}
			}
			return watchPlan{}
		}
		began, arrived := time.Now(), time.Duration(0)
		store.decide = func(call) error { arrived = time.Since(began); return nil }
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{
			ResourceVersion: "9",
			Backoff:         &wait.Backoff{Duration: 10 * time.Millisecond, Factor: 2, Steps: 100, Cap: 100 * time.Millisecond},
		}))
		elapse(time.Second)
		require.Equal(t, []string{"add a@10"}, store.calls())
		watches, lists := s.requests()
		require.Equal(t, []string{"9", "9", "9", "9", "9", "9"}, watches)
		require.Zero(t, lists)
		require.Equal(t, 250*time.Millisecond, arrived, "10 + 20 + 40 + 80 + 100")
	})
}

func TestAServerThatReturnsIsAskedAtOnceAndThenAgainSoon(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		returned := make(chan struct{})
		answers := time.Now().Add(10*time.Minute + returnSpread + 2*time.Second) // The server is not ready at once.
		s.onWatch = func(metav1.ListOptions) watchPlan {
			if time.Now().Before(answers) {
				return watchPlan{refuse: refused()}
			}
			return watchPlan{}
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{
			ResourceVersion: "9", Returned: func() <-chan struct{} {
				if time.Now().Before(answers.Add(-returnSpread - 2*time.Second)) {
					return returned
				}
				return nil
			},
		}))
		elapse(10 * time.Minute)
		before := len(s.watched())
		close(returned)
		elapse(returnSpread)
		require.Greater(t, len(s.watched()), before)
		elapse(10 * time.Second)
		require.Contains(t, store.calls(), "add a@10")
	})
}

func TestReconnectsDoNotDelayTheResync(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{
			ResourceVersion: "9", ResyncPeriod: 10 * time.Minute, MinWatchTimeout: time.Minute,
		}))
		elapse(31 * time.Minute)
		require.Equal(t, []string{"resync", "resync", "resync"}, store.calls())
		require.Greater(t, len(s.watched()), 10)
	})
}
