package reflector

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

func TestAQuietStreamWithoutBookmarksDoesNotAge(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(8), &ledger{}
		s.write(watch.Added, "a")
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 10}))
		for range 3 {
			s.elsewhere()
			elapse(defaultLookInterval)
		}
		require.Equal(t, []string{"bookmark 10", "bookmark 11", "bookmark 12"}, store.calls())
		require.Len(t, s.watched(), 1, "the watch goes on")
		s.compact()
		elapse(11 * time.Minute) // No watch has a longer timeout.
		require.Equal(t, "12", s.watched()[1].ResourceVersion)
		s.write(watch.Added, "b")
		elapse(0)
		require.Equal(t, "add b@13", store.calls()[3])
	})
}

func TestDeletesOfOneVersionDoNotStopAQuietStreamFromMoving(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(7), &ledger{}
		s.write(watch.Added, "a")
		s.write(watch.Added, "b")
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 10}))
		s.write(watch.Deleted, "a", "b")
		s.elsewhere()
		elapse(defaultLookInterval + worksAfter)
		require.Equal(t, []string{"delete a@10", "delete b@10", "bookmark 11"}, store.calls())
	})
}

func TestAQuietStreamIsNotMovedPastEventsThatItsWatchHasNotServed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(8), &ledger{}
		s.write(watch.Added, "a")
		stuck := make(chan struct{})
		s.onWatch = func(metav1.ListOptions) watchPlan { return watchPlan{holdUntil: stuck} }
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 10}))
		s.write(watch.Added, "brief")
		s.write(watch.Deleted, "brief")
		s.elsewhere()
		elapse(2 * defaultLookInterval)
		require.Empty(t, store.calls())
		close(stuck)
		elapse(0)
		require.Equal(t, []string{"add brief@10", "delete brief@11"}, store.calls())
	})
}

func TestAWatchThatMissesEventsIsOpenedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(8), &ledger{}
		s.write(watch.Added, "a")
		stuck := make(chan struct{})
		defer close(stuck)
		s.onWatch = func(metav1.ListOptions) watchPlan {
			if len(s.watches) > 1 {
				return watchPlan{}
			}
			return watchPlan{holdUntil: stuck}
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 10}))
		s.write(watch.Added, "b")
		elapse(2*defaultLookInterval + worksAfter)
		require.Equal(t, []string{"add b@10"}, store.calls())
		require.Len(t, s.watched(), 2)
	})
}

func TestNoLookFollowsARecoveryThatHasMovedAQuietStream(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		away := true
		s.onWatch = func(metav1.ListOptions) watchPlan {
			if away {
				return watchPlan{refuse: refused()}
			}
			return watchPlan{}
		}
		asked := 0
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{
			ResourceVersion: "9", RecoverRevisions: 10, Hooks: Hooks{Recovered: func(Recovery) { _, asked = s.requests() }},
		}))
		elapse(2 * defaultLookInterval)
		s.elsewhere()
		s.forget()
		s.set(func() { away = false })
		elapse(2*backoffMax + 2*worksAfter)
		require.Contains(t, store.calls(), "bookmark 10")
		_, askedSince := s.requests()
		require.Equal(t, asked, askedSince)
		s.elsewhere()
		elapse(defaultLookInterval)
		require.Contains(t, store.calls(), "bookmark 11")
	})
}

// depth is how much history etcd keeps, as other streams have found out.
type depth struct{ kept atomic.Int64 }

func keeping(kept time.Duration) *depth {
	d := &depth{}
	d.kept.Store(int64(kept))
	return d
}

func (d *depth) Kept() time.Duration { return time.Duration(d.kept.Load()) }

func (*depth) Unaccounted(context.Context, uint64, uint64, int, bool) ([]uint64, error) {
	return nil, nil
}

func TestAQuietStreamIsLookedAtSixTimesWhileEtcdKeepsARevision(t *testing.T) {
	for kept, every := range map[time.Duration]time.Duration{
		0: 5 * time.Second, 15 * time.Second: 5 * time.Second, time.Minute: 10 * time.Second, 5 * time.Minute: 50 * time.Second, time.Hour: 90 * time.Second,
	} {
		inBubble(t, func(t *testing.T) {
			s, store, h := newServer(9), &ledger{}, keeping(kept)
			start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 10, Revisions: h, NoBookmarks: true}))
			s.elsewhere()
			elapse(every - time.Second)
			require.Empty(t, store.calls(), "%s kept", kept)
			elapse(2 * time.Second)
			require.Equal(t, []string{"bookmark 10"}, store.calls(), "%s kept", kept)
			s.elsewhere()
			elapse(every - 2*time.Second)
			require.Len(t, store.calls(), 1, "%s kept", kept)
			elapse(2 * time.Second)
			require.Equal(t, "bookmark 11", store.calls()[1], "%s kept", kept)
		})
	}
}

func TestLooksBecomeRareAsMoreHistoryProvesReadable(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := newServer(9), keeping(0)
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "9", RecoverRevisions: 10, Revisions: h, NoBookmarks: true}))
		elapse(20 * time.Second)
		require.Len(t, s.listed(), 4)
		h.kept.Store(int64(time.Hour))
		elapse(8 * time.Minute)
		require.Len(t, s.listed(), 4+5, "at 90 s, and each 90 s from there")
	})
}

func TestAStreamWhoseBookmarksDoNotMoveIsLookedAt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, h := newServer(9), &ledger{}, keeping(0)
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{
			ResourceVersion: "9", RecoverRevisions: 10, Revisions: h, MinWatchTimeout: time.Hour,
		}))
		s.elsewhere()
		s.bookmark()
		elapse(2 * time.Minute)
		require.Empty(t, s.listed(), "that bookmark has moved the position")
		s.bookmark() // The server's cache does not know the next write.
		s.elsewhere()
		elapse(defaultLookInterval)
		require.Equal(t, []string{"bookmark 10", "bookmark 10", "bookmark 11"}, store.calls())
		s.elsewhere()
		s.bookmark()
		before := len(s.listed())
		elapse(2 * time.Minute)
		require.Len(t, s.listed(), before, "the position moves again")
		require.Len(t, s.watched(), 1)
	})
}

func TestAStreamWithoutABookmarkYetGetsTimeForOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, h := newServer(9), &ledger{}, keeping(0)
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 10, Revisions: h}))
		s.elsewhere()
		elapse(defaultLookInterval - time.Second)
		require.Empty(t, s.listed())
		elapse(time.Second)
		s.elsewhere()
		elapse(quietLeast)
		require.Equal(t, []string{"bookmark 10", "bookmark 11"}, store.calls(), "the server sends none, and may keep little history")
	})
}

func TestAServerWithoutAnswersIsNotAskedEveryFewSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := newServer(9), keeping(0)
		s.onList = func(metav1.ListOptions) error { return expired() }
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "9", RecoverRevisions: 10, Revisions: h, NoBookmarks: true}))
		elapse(4 * time.Minute)
		require.Len(t, s.listed(), 3)
	})
}

func TestAStreamWithBookmarksIsNotLookedAt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServer(9)
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "9", RecoverRevisions: 10}))
		for range 5 {
			s.elsewhere()
			s.bookmark()
			elapse(time.Minute)
		}
		require.Empty(t, s.listed())
	})
}

func TestALookWithoutBudgetIsRepeatedAndTakesNothingFromRecoveries(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(8), &ledger{}
		s.write(watch.Added, "a")
		var looks, recoveries atomic.Int64
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{
			ResourceVersion: "9", RecoverRevisions: 10,
			AllowRecovery: func() bool { recoveries.Add(1); return true },
			AllowLook:     func() bool { return looks.Add(1) > 1 },
		}))
		s.elsewhere()
		elapse(defaultLookInterval)
		require.Empty(t, store.calls())
		elapse(defaultLookInterval)
		require.Equal(t, []string{"bookmark 10"}, store.calls())
		require.Zero(t, recoveries.Load())
	})
}
