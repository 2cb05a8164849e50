package reflector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
)

func TestAPoisonedPlaceIsListedPastOnlyAfterIdenticalFailures(t *testing.T) {
	unsafeDelete := &metav1.Status{Status: metav1.StatusFailure, Code: 500, Reason: metav1.StatusReasonStoreReadError}
	for name, plan := range map[string]watchPlan{
		"the server cannot convert":      {immediate: true, sharply: status(internal())},
		"a corrupt object was deleted":   {immediate: true, sharply: unsafeDelete},
		"an ERROR that is no Status":     {immediate: true, sharply: pod("a", "1")},
		"the server rejects the request": {refuse: apierrors.NewBadRequest("bad resource version")},
		"an ERROR with an unusual 4xx":   {immediate: true, sharply: status(apierrors.NewBadRequest("no"))},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, store := newServer(9), &ledger{}
				s.write(watch.Added, "a")
				s.onWatch = func(o metav1.ListOptions) watchPlan {
					if o.ResourceVersion == "9" {
						return plan
					}
					return watchPlan{}
				}
				start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
				elapse(10 * time.Minute)
				require.Equal(t, []string{"begin undecodable from 9", "page a@10", "end 10"}, store.calls())
				require.Contains(t, store.find("begin").detail, "failed 5 times in the same way")
				watches, _ := s.requests()
				require.Equal(t, []string{"9", "9", "9", "9", "9", "10"}, watches[:6])
			})
		})
	}
}

func TestAnIllServerDoesNotCostTheHistory(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		ill := true
		s.onList = func(metav1.ListOptions) error { return internal() }
		s.onWatch = func(metav1.ListOptions) watchPlan {
			if ill {
				return watchPlan{immediate: true, sharply: status(internal())}
			}
			return watchPlan{}
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
		elapse(10 * time.Minute)
		s.set(func() { ill = false })
		elapse(2 * time.Minute)
		calls := store.calls()
		require.Equal(t, []string{"interrupted undecodable", "resumed", "add a@10"}, calls[len(calls)-3:])
		require.NotContains(t, calls, "begin undecodable from 9")
	})
}

func TestAHiccupDoesNotCountAsAPassedPlace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		ill, away := true, 0
		s.onList = func(metav1.ListOptions) error { return internal() }
		s.onWatch = func(metav1.ListOptions) watchPlan {
			switch {
			case ill:
				return watchPlan{immediate: true, sharply: status(internal())}
			case away > 0:
				away--
				return watchPlan{refuse: refused()}
			}
			return watchPlan{cutAfter: 1}
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
		elapse(10 * time.Minute)
		s.set(func() { ill = false })
		elapse(2 * time.Hour)
		before := store.calls()
		require.Equal(t, []string{"interrupted undecodable", "resumed", "add a@10"}, before[len(before)-3:])
		s.set(func() { away = 2 })
		s.write(watch.Added, "b")
		elapse(time.Minute)
		require.Zero(t, away, "it was refused")
		require.Equal(t, append(before, "add b@11"), store.calls())
	})
}

// The store has the items of the list. A watch from before the list would give the rest too late.
func TestAListThatHasBegunIsListedToItsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		for _, name := range []string{"a", "b", "c"} {
			s.write(watch.Added, name)
		}
		lists := 0
		s.onList = func(o metav1.ListOptions) error {
			if lists++; o.Continue != "" && lists < 6 {
				return internal()
			}
			return nil
		}
		s.onWatch = func(o metav1.ListOptions) watchPlan {
			if o.ResourceVersion == "9" && lists == 0 {
				return watchPlan{immediate: true, sharply: status(internal())}
			}
			return watchPlan{}
		}
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"})
		r.WatchListPageSize = 2
		start(t, r)
		elapse(10 * time.Minute)
		calls := store.calls()
		require.Contains(t, calls, "abort")
		require.Equal(t, []string{"page a@10 b@11", "page c@12", "end 12"}, calls[len(calls)-3:])
		watches, _ := s.requests()
		require.NotContains(t, watches[5:], "9")
	})
}

func TestAnEventThatCannotBeUsedStopsTheStreamAtItsPlace(t *testing.T) {
	kind := func(apiVersion, kind string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": "x", "resourceVersion": "11"},
		}}
	}
	for name, c := range map[string]struct {
		expected any
		event    watch.Event
		says     string
	}{
		"another type":       {&v1.Pod{}, watch.Event{Type: watch.Added, Object: &v1.Service{}}, "object is a *v1.Service, expected *v1.Pod"},
		"another kind":       {kind("v1", "Pod"), watch.Event{Type: watch.Added, Object: kind("v1", "Node")}, "expected /v1, Kind=Pod"},
		"a table":            {nil, watch.Event{Type: watch.Added, Object: kind("meta.k8s.io/v1", "Table")}, "must not ask for tables"},
		"an old table":       {nil, watch.Event{Type: watch.Added, Object: kind("meta.k8s.io/v1beta1", "Table")}, "must not ask for tables"},
		"no metadata":        {nil, watch.Event{Type: watch.Added, Object: &metav1.Status{}}, "object without metadata"},
		"no object":          {nil, watch.Event{Type: watch.Added}, "no object"},
		"unknown event type": {nil, watch.Event{Type: "RENAMED", Object: pod("a", "11")}, `unknown watch event type "RENAMED"`},
	} {
		t.Run(name, func(t *testing.T) {
			lw, w := scripted()
			store := &ledger{}
			r := NewReflectorWithOptions(lw, c.expected, store, Options{ResourceVersion: "10"})
			go w.Action(c.event.Type, c.event.Object)
			err := r.ListAndWatchWithContext(t.Context())
			require.ErrorContains(t, err, c.says)
			require.Equal(t, poisonFailure, kindOf(err))
			require.Empty(t, store.calls())
			require.Equal(t, "10", r.LastSyncResourceVersion())
			require.True(t, w.IsStopped())
		})
	}
	t.Run("a table of another group is an object", func(t *testing.T) {
		require.False(t, isTable(kind("furniture.example/v1", "Table")))
	})
}

func TestFailuresAtDifferentPlacesOrFarApartDoNotAddUp(t *testing.T) {
	bad := watchPlan{immediate: true, sharply: status(internal())}
	t.Run("different places", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			s, store := newServer(9), &ledger{}
			s.onWatch = plans(bad, bad, bad, watchPlan{cutAfter: 1}, bad, bad, bad)
			s.write(watch.Added, "a")
			start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
			elapse(30 * time.Minute)
			require.Empty(t, s.listed())
			require.Len(t, s.watched()[:8], 8)
		})
	})
	t.Run("far apart", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			s := newServer(9)
			s.onWatch = plans(bad, bad, bad, watchPlan{}, bad, bad, bad)
			start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{},
				Options{ResourceVersion: "9", MinWatchTimeout: 20 * time.Minute}))
			elapse(2 * time.Hour)
			require.Empty(t, s.listed())
			require.GreaterOrEqual(t, len(s.watched()), 8)
		})
	})
}
