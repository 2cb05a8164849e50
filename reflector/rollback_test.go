package reflector

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/delta"
)

// historian is a History with the answers of the test.
type historian struct {
	mu     sync.Mutex
	proof  string
	failed error  // if the check fails
	at     string // a resource version at which other streams were listed
	stale  error  // why a list does not show the present state
	asked  []string
	shown  int // items of lists
}

func (h *historian) set(change func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	change()
}

func (h *historian) CheckRollback(_ context.Context, rv string) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = append(h.asked, rv)
	if rv == "" {
		return "", h.failed
	}
	return h.proof, h.failed
}

func (h *historian) CheckList(_ context.Context, _ string, items []any) (at string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.shown += len(items)
	return h.at, h.stale
}

func TestTheHistoryIsCheckedBeforeEachWatch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, h := withPods(2), &ledger{}, &historian{}
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "2", History: h})
		h.proof = "it is younger"
		h.stale = errors.New("the cache is stale")
		start(t, r)
		h.set(func() { require.Equal(t, []string{"2"}, h.asked) })
		require.Equal(t, []string{"interrupted history_reversed"}, store.calls(), "at once, and nothing of a stale list")
		require.Equal(t, "it is younger", store.find("interrupted").detail)
		require.Empty(t, s.watched(), "a watch from there would be in another history")
		elapse(2 * time.Minute)
		require.Len(t, store.calls(), 1)

		h.set(func() { h.stale, h.proof = nil, "" })
		elapse(2 * time.Minute)
		require.Equal(t, []string{"interrupted history_reversed", "begin history_reversed from 2", "page a@1 b@2", "end 2"}, store.calls())
		require.Contains(t, store.find("begin").detail, "it is younger")
		h.set(func() { require.Positive(t, h.shown) })
		require.Len(t, s.watched(), 1, "the stream goes on")
	})
}

func TestWithoutAnAnswerAboutTheHistoryNothingIsWatched(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, h := withPods(2), &ledger{}, &historian{failed: errors.New("no answer")}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "2", History: h}))
		elapse(unreachableAfter + time.Minute) // attempts are up to half a minute apart
		require.Empty(t, s.watched())
		require.Equal(t, []string{"interrupted unreachable"}, store.calls())
		h.set(func() { h.failed = nil })
		elapse(2 * time.Minute)
		require.Len(t, s.watched(), 1)
		require.Empty(t, s.listed())
		require.Equal(t, []string{"interrupted unreachable", "resumed"}, store.calls())
	})
}

func TestARolledBackStreamClosesItsOpenWatchOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, h := withPods(2), &ledger{}, &historian{}
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "2", History: h})
		store.decide = func(c call) error {
			if c.method == "interrupted" {
				r.ReportRollback("and another") // A report after the list would be one of another rollback.
			}
			return nil
		}
		start(t, r)
		require.Empty(t, store.calls())
		r.ReportRollback("another stream has seen it")
		synctest.Wait()
		want := []string{"interrupted history_reversed", "begin history_reversed from 2", "page a@1 b@2", "end 2"}
		require.Equal(t, want, store.calls())
		s.write(watch.Modified, "a")
		synctest.Wait()
		elapse(time.Minute)
		require.Equal(t, append(want, "update a@3"), store.calls())
		require.Equal(t, 1, s.count(&s.open))
	})
}

func TestAnotherHistoryIsNotTakenForAnExpiredOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := withPods(2), &ledger{}
		for range 5 {
			s.elsewhere()
		}
		s.forget()
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "2", History: history{func(n int) string {
			if n == 1 {
				return ""
			}
			return "it is another" // by the time that the watch is refused
		}, new(int)}, RecoverRevisions: 100})
		start(t, r)
		elapse(time.Minute)
		require.Equal(t, []string{"interrupted history_reversed", "begin history_reversed from 2", "page a@1 b@2", "end 7"}, store.calls())
	})
}

// history gives another answer each time.
type history struct {
	proof func(n int) string
	n     *int
}

func (h history) CheckRollback(_ context.Context, rv string) (string, error) {
	if rv != "2" {
		return "", nil
	}
	*h.n++
	return h.proof(*h.n), nil
}

func (history) CheckList(context.Context, string, []any) (string, error) { return "", nil }

func TestAStreamIsListedAtTheVersionOfOtherStreams(t *testing.T) {
	for name, test := range map[string]struct {
		at    string
		lists []string
	}{
		"the server has that version":  {"2", []string{"begin history_reversed from 2", "page a@1 b@2", "end 2"}},
		"the server has forgotten it":  {"1", []string{"begin history_reversed from 2", "page a@1 b@2 c@3", "end 3"}},
		"the version is in the future": {"9", []string{"begin history_reversed from 2", "page a@1 b@2 c@3", "end 3"}},
		"the list is at that version":  {"3", []string{"begin history_reversed from 2", "page a@1 b@2 c@3", "end 3"}},
		"no other stream was listed":   {"", []string{"begin history_reversed from 2", "page a@1 b@2 c@3", "end 3"}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, store, h := withPods(3), &ledger{}, &historian{proof: "it is younger", at: test.at}
				s.compacted = 2
				start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "2", History: h, PageSize: 2}))
				elapse(10 * time.Second)
				require.Equal(t, "interrupted history_reversed", store.calls()[0])
				var pages []string
				for _, call := range store.calls()[1:] {
					if n := len(pages); n > 0 && strings.HasPrefix(call, "page ") && strings.HasPrefix(pages[n-1], "page ") {
						pages[n-1] += strings.TrimPrefix(call, "page")
						continue
					}
					pages = append(pages, call)
				}
				require.Equal(t, test.lists, pages[:3])
			})
		})
	}
}

func TestAStreamThatWasRolledBackBeforeRejectsAStaleList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, h := withPods(2), &ledger{}, &historian{stale: errors.New("the cache is stale")}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ListCause: delta.CauseHistoryReversed, History: h}))
		elapse(time.Minute)
		require.NotContains(t, store.calls(), "end 2")
		h.set(func() { h.stale = nil })
		elapse(2 * time.Minute)
		require.Contains(t, store.calls(), "end 2")
	})
}

// If no client was allowed to list a resource before, an API server may still cache the old history of it.
func TestAStaleFirstListIsRejected(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, h := withPods(2), &ledger{}, &historian{stale: errors.New("the cache is stale")}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{History: h}))
		elapse(20 * time.Second)
		require.Empty(t, store.calls())
		h.set(func() { h.stale = nil })
		elapse(2 * time.Minute)
		require.Equal(t, []string{"begin first_list", "page a@1 b@2", "end 2"}, store.calls())
	})
}

// Another list takes long. Meanwhile another stream finds the rollback.
func TestAStreamThatIsRolledBackAtTheGateRejectsAStaleList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, h, turn := withPods(2), &ledger{}, &historian{}, make(chan struct{})
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "1", History: h, ListGate: func(ctx context.Context) (func(), error) {
			select {
			case <-turn:
			case <-ctx.Done():
			}
			return func() {}, ctx.Err()
		}})
		s.forget()
		start(t, r)
		elapse(time.Minute)
		require.Empty(t, store.calls())
		h.set(func() { h.stale = errors.New("the cache is stale") })
		r.ReportRollback("another stream has seen it")
		close(turn)
		elapse(2 * time.Minute)
		require.Equal(t, []string{"interrupted history_reversed"}, store.calls())
		h.set(func() { h.stale = nil })
		elapse(2 * time.Minute)
		require.Equal(t, []string{"interrupted history_reversed", "begin history_reversed from 1", "page a@1 b@2", "end 2"}, store.calls())
	})
}

// Another stream's proof comes while a list begins for another cause.
func TestAListThatBeginsWithoutACheckEndsWhenTheHistoryIsRolledBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, h := withPods(2), &ledger{}, &historian{}
		s.forget()
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "1", History: h})
		store.decide = func(c call) error {
			if c.method == "begin" && c.cause == delta.CauseExpired {
				h.set(func() { h.stale = errors.New("the cache is stale") })
				r.ReportRollback("another stream has seen it")
			}
			return nil
		}
		start(t, r)
		elapse(time.Minute)
		want := []string{"begin expired from 1", "abort", "interrupted history_reversed"}
		require.Equal(t, want, store.calls(), "the list is stale")
		h.set(func() { h.stale = nil })
		elapse(2 * time.Minute)
		require.Equal(t, append(want, "begin history_reversed from 1", "page a@1 b@2", "end 2"), store.calls())
	})
}

func TestTheListAfterARollbackIsTriedSeveralTimesAMinute(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, h := withPods(2), &historian{proof: "it is younger", stale: errors.New("the cache is stale")}
		var tries []time.Time
		var down error
		s.onList = func(metav1.ListOptions) error {
			tries = append(tries, time.Now())
			return down
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "2", History: h}))
		elapse(10 * time.Minute)
		s.set(func() { down = refused() })
		elapse(10 * time.Minute)
		s.set(func() {
			require.Greater(t, len(tries), 60, "three tries a minute at least")
			for i := range tries[1:] {
				require.LessOrEqual(t, tries[i+1].Sub(tries[i]), 2*rollbackRetry)
			}
		})
	})
}
