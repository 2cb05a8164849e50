package reflector

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// elsewhere holds revisions that belong to another resource.
type elsewhere []uint64

func (e elsewhere) Unaccounted(_ context.Context, from, to uint64, _ int, _ bool) ([]uint64, error) {
	var left []uint64
	for revision := from + 1; revision <= to; revision++ {
		if !slices.Contains(e, revision) {
			left = append(left, revision)
		}
	}
	return left, nil
}

func (elsewhere) Kept() time.Duration { return 0 }

// recovered starts a reflector at a position whose history has expired, and returns its recovery.
func recovered(t *testing.T, s *server, store *ledger, at int, options Options) Recovery {
	t.Helper()
	s.forget()
	var recoveries []Recovery
	options.ResourceVersion = strconv.Itoa(at)
	options.RecoverRevisions = 20
	options.Hooks.Recovered = func(r Recovery) { recoveries = append(recoveries, r) }
	start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, options))
	require.Len(t, recoveries, 1)
	return recoveries[0]
}

func TestRevisionsOfOtherStreamsAreNotRead(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		for range 5 {
			s.elsewhere()
		}
		got := recovered(t, s, store, 9, Options{Revisions: elsewhere{10, 11, 12, 13, 14}})
		require.Equal(t, Recovery{From: "9", To: "14", Requests: 1, Complete: true}, got, "the server's version, and nothing else")
		require.Equal(t, []string{"bookmark 14"}, store.calls())
	})
}

func TestAResourceWithoutChangesIsReadOnceForAnyNumberOfRevisions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(0), &ledger{}
		for i := range 1200 {
			s.write(watch.Added, fmt.Sprint(i))
		}
		at := s.rv
		for range 10 {
			s.elsewhere()
		}
		got := recovered(t, s, store, at, Options{})
		require.Equal(t, []string{"bookmark 1210"}, store.calls())
		require.Equal(t, 1+3+11, got.Requests, "the server's version, three pages, and the counts")
	})
}

func TestARecoveryFindsAnObjectThatCameAndWentBetweenTwoEqualLists(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(8), &ledger{}
		s.write(watch.Added, "stays")
		s.elsewhere()
		s.write(watch.Added, "brief")
		s.elsewhere()
		s.write(watch.Modified, "brief")
		s.write(watch.Deleted, "brief")
		s.elsewhere()
		recovered(t, s, store, 9, Options{Revisions: elsewhere{12}})
		require.Equal(t, []string{"add brief@11", "update brief@13", "delete brief@14", "bookmark 15"}, store.calls())
	})
}

func TestALargeResourceIsRecoveredPageByPage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(0), &ledger{}
		for i := range 1200 {
			s.write(watch.Added, fmt.Sprint(i))
		}
		at := s.rv
		s.write(watch.Modified, "7")
		s.write(watch.Modified, "7")
		s.write(watch.Deleted, "1100")
		recovered(t, s, store, at, Options{})
		require.Equal(t, []string{"update 7@1201", "update 7@1202", "delete 1100@1203", "bookmark 1203"}, store.calls())
	})
}

func TestWrongKnowledgeOfOtherStreamsIsNotTrusted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		s.elsewhere()
		got := recovered(t, s, store, 9, Options{Revisions: elsewhere{10}})
		require.False(t, got.Complete)
		require.Equal(t, []string{"begin expired from 9", "page a@10", "end 11"}, store.calls())
	})
}

func TestARecoveryWaitsForAServerThatIsStillStarting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		s.forget()
		failures := 0
		s.onList = func(o metav1.ListOptions) error {
			if failures++; failures <= 4 {
				return []error{refused(), tooMany(1), internal(), forbidden()}[failures-1]
			}
			return nil
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 20}))
		elapse(time.Minute)
		require.Equal(t, []string{"add a@10", "bookmark 10"}, store.calls())
	})
}

func TestHistoryIsRecoveredOnlyUpToTheServersOwn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.elsewhere()
		s.forget()
		for range 3 {
			s.write(watch.Added, fmt.Sprint("later-", s.rv))
		}
		s.onWatch = plans(watchPlan{refuse: expiredBefore(10)})
		var recoveries []Recovery
		options := Options{ResourceVersion: "9", RecoverRevisions: 20, Hooks: Hooks{Recovered: func(r Recovery) { recoveries = append(recoveries, r) }}}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, options))
		require.Equal(t, "10", recoveries[0].To)
		require.Equal(t, 1, recoveries[0].Revisions)
		require.Len(t, store.calls(), 4)
	})
}

func TestALongHistoryIsRecoveredStepByStep(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		for range recoverStep + 1 {
			s.elsewhere()
		}
		s.write(watch.Added, "a")
		s.forget()
		steps := []string{}
		options := Options{ResourceVersion: "9", RecoverRevisions: 1000}
		options.Hooks.Recovered = func(r Recovery) { steps = append(steps, r.From+"-"+r.To) }
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, options))
		require.Equal(t, []string{"9-509", "509-511"}, steps)
		require.Equal(t, []string{"bookmark 509", "add a@511", "bookmark 511"}, store.calls())
	})
}

func TestARecoveryGoesOnWhileEachAttemptFindsSomething(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const writes = 60
		s, store := newServer(9), &ledger{}
		for range writes {
			s.write(watch.Modified, "a")
		}
		s.forget()
		attempts, looks := 0, 0
		s.onList = func(o metav1.ListOptions) error {
			switch {
			case o.ResourceVersion == "" && o.Limit == 1:
				attempts++
				looks = 0
			case o.Limit != 1:
				looks++
			}
			if looks > 12 {
				return refused()
			}
			return nil
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 1000}))
		elapse(10 * time.Minute)
		require.Greater(t, attempts, recoverTries+1, "otherwise the test proves nothing")
		require.Len(t, store.calls(), writes+1)
		require.NotContains(t, store.calls(), "begin expired from 9")
		require.Equal(t, "bookmark 69", store.calls()[writes])
	})
}

// heavy is a server with large lists.
type heavy struct {
	*server
	weight string
}

func (h *heavy) ListWithContext(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	list, err := h.server.ListWithContext(ctx, o)
	if pods, ok := list.(*v1.PodList); ok {
		for i := range pods.Items {
			pods.Items[i].Annotations = map[string]string{"w": h.weight}
		}
	}
	return list, err
}

func TestALargeHistoryIsRecoveredInSeveralAttempts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(8), &ledger{}
		s.write(watch.Added, "a")
		for range 20 {
			s.write(watch.Modified, "a")
		}
		s.forget()
		h := &heavy{s, strings.Repeat("x", 60<<20)}
		start(t, NewReflectorWithOptions(h, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 100}))
		elapse(10 * time.Minute)
		require.Len(t, store.calls(), 21)
		require.Equal(t, "bookmark 29", store.calls()[20])
		require.NotContains(t, strings.Join(store.calls(), " "), "begin")
	})
}

func TestARecoveryWithoutBudgetIsAGap(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		for range 100 {
			s.elsewhere()
		}
		s.forget()
		var asked atomic.Int64
		afford := func() bool { return asked.Add(1) <= 30 }
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 1000, AllowRecovery: afford}))
		require.Equal(t, []string{"begin expired from 9", "page", "end 109"}, store.calls())
		require.LessOrEqual(t, len(s.listed()), 30+1)
	})
}

func TestARecoveryEndsWhenTheHistoryIsRolledBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := withPods(2), &ledger{}
		for range 100 {
			s.elsewhere()
		}
		s.forget()
		var recoveries []Recovery
		options := Options{ResourceVersion: "2", RecoverRevisions: 1000, Hooks: Hooks{Recovered: func(r Recovery) { recoveries = append(recoveries, r) }}}
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, options)
		s.onList = func(metav1.ListOptions) error {
			if len(recoveries) == 0 {
				r.ReportRollback("another stream has seen it")
			}
			return nil
		}
		start(t, r)
		require.Len(t, recoveries, 1)
		require.False(t, recoveries[0].Complete)
		require.Equal(t, 1, recoveries[0].Requests, "the one during which the rollback was found")
		require.Equal(t, []string{"interrupted history_reversed", "begin history_reversed from 2", "page a@1 b@2", "end 102"}, store.calls())
	})
}

func TestAHistoryThatEtcdHasForgottenTakesTwoRequests(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		for range 15 {
			s.elsewhere()
		}
		s.compact()
		got := recovered(t, s, store, 9, Options{})
		require.False(t, got.Complete)
		require.Equal(t, 2, got.Requests, "the server's version, and the objects at the position")
		require.Equal(t, []string{"begin expired from 9", "page", "end 24"}, store.calls())
	})
}
