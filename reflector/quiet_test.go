package reflector

import (
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
			pass(defaultUnmarkedTimeout)
		}
		require.Equal(t, []string{"bookmark 10", "bookmark 11", "bookmark 12"}, store.calls())
		require.Len(t, s.watched(), 1, "the watch goes on")
		s.compact()
		pass(11 * time.Minute) // No watch is asked for longer.
		require.Equal(t, "12", s.watched()[1].ResourceVersion)
		s.write(watch.Added, "b")
		pass(0)
		require.Equal(t, "add b@13", store.calls()[3])
	})
}

func TestSeveralDeletesOfOneVersionDoNotKeepAQuietStreamFromMoving(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(7), &ledger{}
		s.write(watch.Added, "a")
		s.write(watch.Added, "b")
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 10}))
		s.write(watch.Deleted, "a", "b")
		s.elsewhere()
		pass(defaultUnmarkedTimeout + settleAfter)
		require.Equal(t, []string{"delete a@10", "delete b@10", "bookmark 11"}, store.calls())
	})
}

func TestAQuietStreamIsNotMovedPastWhatItsWatchHasNotSaid(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(8), &ledger{}
		s.write(watch.Added, "a")
		stuck := make(chan struct{})
		s.onWatch = func(metav1.ListOptions) watchPlan { return watchPlan{holdUntil: stuck} }
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 10}))
		s.write(watch.Added, "brief")
		s.write(watch.Deleted, "brief")
		s.elsewhere()
		pass(2 * defaultUnmarkedTimeout)
		require.Empty(t, store.calls())
		close(stuck)
		pass(0)
		require.Equal(t, []string{"add brief@10", "delete brief@11"}, store.calls())
	})
}

func TestAWatchThatDoesNotSayWhatHasHappenedIsOpenedAnew(t *testing.T) {
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
		pass(2*defaultUnmarkedTimeout + settleAfter)
		require.Equal(t, []string{"add b@10"}, store.calls())
		require.Len(t, s.watched(), 2)
	})
}

func TestAStreamWithBookmarksIsNotLookedAt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServer(9)
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "9", RecoverRevisions: 10}))
		for range 5 {
			s.elsewhere()
			s.bookmark()
			pass(time.Minute)
		}
		require.Empty(t, s.listed())
	})
}
