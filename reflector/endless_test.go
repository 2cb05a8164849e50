package reflector

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// paged returns a source whose lists come page by page, and whose watches are silent.
func paged(page func(metav1.ListOptions) (runtime.Object, error)) *cache.ListWatch {
	return &cache.ListWatch{
		ListFunc:  page,
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil },
	}
}

func TestAListWithRepeatedTokensEndsWithAnErrorForTheStore(t *testing.T) {
	for name, test := range map[string]struct{ cycle, pages int }{"the same token": {1, 2}, "three in turn": {3, 4}} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				asked, store := 0, &ledger{}
				source := paged(func(metav1.ListOptions) (runtime.Object, error) {
					asked++
					return podList("5", strconv.Itoa(asked%test.cycle), pod(strconv.Itoa(asked), "4")), nil
				})
				r := NewReflector(source, &v1.Pod{}, store, 0)
				err := r.ListAndWatchWithContext(t.Context())
				require.ErrorContains(t, err, "the list would never end")
				require.ErrorContains(t, err, "list *v1.Pod")
				require.Equal(t, test.pages, asked)
				calls := store.calls()
				require.Equal(t, "abort", calls[len(calls)-1])
				require.Empty(t, r.LastSyncResourceVersion())
			})
		})
	}
}

func TestARecoveryWithEndlessListsIsAborted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		s.write(watch.Modified, "a")
		s.forget()
		asked := 0
		var recoveries []Recovery
		source := &cache.ListWatch{
			WatchFunc: s.Watch,
			ListFunc: func(options metav1.ListOptions) (runtime.Object, error) {
				list, err := s.List(options)
				if whole := options.ResourceVersionMatch == metav1.ResourceVersionMatchExact && options.Limit != 1; whole || options.Continue == "again" {
					asked++
					return podList("11", "again", pod("a", "10")), nil
				}
				return list, err
			},
		}
		r := NewReflectorWithOptions(source, &v1.Pod{}, store, Options{
			ResourceVersion: "9", RecoverRevisions: 20, Hooks: Hooks{Recovered: func(r Recovery) { recoveries = append(recoveries, r) }},
		})
		start(t, r)
		require.Len(t, recoveries, 1)
		require.False(t, recoveries[0].Complete)
		require.Equal(t, 2, asked)
	})
}
