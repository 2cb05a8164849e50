package reflector

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// rewriting is a store that changes its objects: version and UID.
func rewriting() *ledger {
	return &ledger{decide: func(c call) error {
		for _, object := range c.objects {
			object.SetResourceVersion("999")
			object.SetUID("rewritten")
		}
		return nil
	}}
}

func TestThePositionIsTheServersEvenIfTheStoreChangesItsObjects(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		source, w := scripted()
		store := rewriting()
		r := NewReflectorWithOptions(source, &v1.Pod{}, store, Options{ResourceVersion: "1"})
		start(t, r)
		w.Add(pod("a", "3"))
		w.Modify(pod("a", "4"))
		w.Delete(pod("a", "5"))
		w.Action(watch.Bookmark, pod("", "6"))
		synctest.Wait()
		require.Equal(t, "6", r.LastSyncResourceVersion())
		require.Equal(t, []string{"3", "4", "5", "6"}, store.versions)
	})
}

func TestARepeatedDeleteIsKnownEvenIfTheStoreChangedTheObject(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), rewriting()
		s.write(watch.Added, "a")
		s.write(watch.Added, "b")
		s.onWatch = plans(watchPlan{cutAfter: 1})
		s.write(watch.Deleted, "a", "b") // both at 12
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "11"}))
		watches, _ := s.requests()
		require.Equal(t, []string{"11", "11"}, watches, "one of two deletes at 12 has come: the watch requests the rest")
		require.Equal(t, []string{"delete a@999", "delete b@999"}, store.calls())
	})
}

func TestARecoveryMovesThePositionEvenIfTheStoreChangesItsObjects(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), rewriting()
		s.write(watch.Added, "a")
		s.write(watch.Modified, "a")
		s.elsewhere()
		got := recovered(t, s, store, 9, Options{})
		require.True(t, got.Complete)
		require.Equal(t, []string{"10", "11", "12"}, store.versions)
	})
}
