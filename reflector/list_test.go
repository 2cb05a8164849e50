package reflector

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// withPods returns a server with pods a, b, c … at versions 1, 2, 3 …
func withPods(n int) *server {
	s := newServer(0)
	for i := range n {
		s.write(watch.Added, string(rune('a'+i)))
	}
	return s
}

func TestAListIsReadInPagesAndThePagesGoToTheStoreOneByOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, pages := withPods(5), &ledger{}, 0
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{
			Hooks: Hooks{ListPage: func(int, int64) { pages++ }},
		})
		r.WatchListPageSize = 2
		start(t, r)
		require.Equal(t, []string{"begin first_list", "page a@1 b@2", "page c@3 d@4", "page e@5", "end 5"}, store.calls())
		require.Equal(t, []metav1.ListOptions{{Limit: 2}, {Limit: 2, Continue: "5/2"}, {Limit: 2, Continue: "5/4"}}, s.listed())
		require.Equal(t, 3, pages)
	})
}

func TestTheWatchIsOpenedAtTheFirstPageAndDeliveredAfterTheLast(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := withPods(3), &ledger{}
		atPage := make(chan struct{})
		store.decide = func(c call) error {
			if c.method == "page" {
				<-atPage
			}
			return nil
		}
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{PageSize: 2})
		start(t, r)
		s.write(watch.Added, "d")
		s.write(watch.Deleted, "a")
		synctest.Wait()
		watches, _ := s.requests()
		require.Equal(t, []string{"3"}, watches)
		s.forget() // the history before now is lost for a watch that would begin only now
		s.mu.Lock()
		s.forgotten = 3 // but the list's own snapshot is still there
		s.mu.Unlock()
		close(atPage)
		synctest.Wait()
		s.write(watch.Added, "e")
		synctest.Wait()
		require.Equal(t, []string{"begin first_list", "page a@1 b@2", "page c@3", "end 3",
			"add d@4", "delete a@5", "add e@6"}, store.calls())
		watches, _ = s.requests()
		require.Equal(t, []string{"3"}, watches)
	})
}

func TestAWatchThatEndsDuringAListIsOpenedAgainAtItsEnd(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := withPods(3), &ledger{}
		atPage := make(chan struct{})
		store.decide = func(c call) error {
			if c.method == "page" {
				<-atPage
			}
			return nil
		}
		plans := []watchPlan{{cutAfter: 2}, {refuse: refused()}, {cutAfter: 1, sharply: status(internal())}}
		s.onWatch = func(metav1.ListOptions) watchPlan {
			if len(plans) == 0 {
				return watchPlan{}
			}
			plan := plans[0]
			plans = plans[1:]
			return plan
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{PageSize: 2}))
		for _, name := range []string{"d", "e", "f", "g"} {
			s.write(watch.Added, name)
			elapse(3 * lookaheadPause)
		}
		watches, _ := s.requests()
		require.Equal(t, []string{"3", "5", "5", "6"}, watches)
		close(atPage)
		synctest.Wait()
		require.Equal(t, []string{"begin first_list", "page a@1 b@2", "page c@3", "end 3",
			"add d@4", "add e@5", "add f@6", "add g@7"}, store.calls())
		require.Equal(t, 1, s.count(&s.open))
	})
}

func TestAWatchIsReadAheadOnlyUpToABound(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := withPods(3), &ledger{}
		atPage := make(chan struct{})
		store.decide = func(c call) error {
			if c.method == "page" {
				<-atPage
			}
			return nil
		}
		// One byte is reached by the first event.
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{PageSize: 2, PageBytes: 1}))
		for range 10 {
			s.write(watch.Modified, "a")
		}
		synctest.Wait()
		require.Equal(t, 1, s.count(&s.sent))
		close(atPage)
		synctest.Wait()
		require.Equal(t, 10, s.count(&s.sent))
		require.Equal(t, 10, strings.Count(fmt.Sprint(store.calls()), "update"))
		require.Len(t, s.watched(), 1)
	})
}

func TestAListWithoutItsSnapshotStartsOverAndComesAtLastInOnePage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := withPods(3), &ledger{}
		s.onList = func(o metav1.ListOptions) error {
			if o.Continue == "" {
				return nil
			}
			s.write(watch.Modified, "a") // the attempts differ
			return expired()
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{PageSize: 2}))
		require.Equal(t, []string{
			"begin first_list", "page a@1 b@2", "abort",
			"begin first_list", "page a@4 b@2", "abort",
			"begin first_list", "page a@5 b@2 c@3", "end 5",
		}, store.calls())
		require.Zero(t, s.listed()[len(s.listed())-1].Limit)
		require.Equal(t, 1, s.count(&s.open))
	})
}

func TestPagesOfDifferentVersionsAreNeverMixed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store, lists := &ledger{}, 0
		lw := &cache.ListWatch{ListFunc: func(o metav1.ListOptions) (runtime.Object, error) {
			lists++
			switch {
			case o.Continue == "":
				return podList(fmt.Sprint(10+lists), "more", pod("a", "1")), nil
			case lists == 2:
				return podList("99", "", pod("b", "2")), nil
			default:
				return podList(fmt.Sprint(10+lists-1), "", pod("b", "2")), nil
			}
		}, WatchFunc: idleWatch}
		start(t, NewReflector(lw, &v1.Pod{}, store, 0))
		require.Equal(t, []string{"begin first_list", "page a@1", "abort",
			"begin first_list", "page a@1", "page b@2", "end 13"}, store.calls())
	})
}

func TestAStoreErrorInAListAbortsItAndDoesNotMoveThePosition(t *testing.T) {
	for _, method := range []string{"begin", "page", "end"} {
		t.Run(method, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, failures := withPods(3), 1
				store := &ledger{decide: func(c call) error {
					if c.method == method && failures > 0 {
						failures--
						return errors.New("database is down")
					}
					return nil
				}}
				r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{PageSize: 2})
				start(t, r)
				require.Empty(t, r.LastSyncResourceVersion())
				elapse(time.Minute)
				require.Equal(t, method != "begin", store.find("abort").method == "abort")
				require.Equal(t, "3", r.LastSyncResourceVersion())
				calls := store.calls()
				require.Equal(t, []string{"begin first_list", "page a@1 b@2", "page c@3", "end 3"}, calls[len(calls)-4:])
				require.Equal(t, 1, s.count(&s.open))
			})
		})
	}
}

func TestPagesAdaptToTheSizeOfObjects(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := withPods(12)
		weight := int64(pod("a", "1").Size())
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{PageSize: 8, PageBytes: 2*weight + 8}))
		require.Equal(t, int64(8), s.listed()[0].Limit)
		require.LessOrEqual(t, s.listed()[1].Limit, int64(2))
		require.GreaterOrEqual(t, s.listed()[1].Limit, int64(1))
	})
}

func TestListsWaitAtTheGateAndReleaseIt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		gate, inside := make(chan struct{}, 1), 0
		enter := func(ctx context.Context) (func(), error) {
			select {
			case gate <- struct{}{}:
				inside++
				return func() { <-gate }, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		held := make(chan struct{})
		slow := &ledger{decide: func(c call) error {
			if c.method == "end" {
				<-held
			}
			return nil
		}}
		first, second := withPods(1), withPods(1)
		start(t, NewReflectorWithOptions(first, &v1.Pod{}, slow, Options{ListGate: enter}))
		start(t, NewReflectorWithOptions(second, &v1.Pod{}, &ledger{}, Options{ListGate: enter}))
		require.Empty(t, second.listed())
		close(held)
		synctest.Wait()
		require.Len(t, second.listed(), 1)
		require.Equal(t, 2, inside)
		require.Empty(t, gate)
	})
}

func TestAListThatIsOlderThanTheRecordHasCauseHistoryReversed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := withPods(2), &ledger{}
		s.onWatch = func(o metav1.ListOptions) watchPlan {
			if o.ResourceVersion == "900" {
				return watchPlan{refuse: expired()}
			}
			return watchPlan{}
		}
		r := NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "900"})
		start(t, r)
		require.Equal(t, []string{"begin history_reversed from 900", "page a@1 b@2", "end 2"}, store.calls())
		require.Contains(t, store.find("begin").detail, "the list is at resource version 2, the record at 900")
		require.Equal(t, "2", r.LastSyncResourceVersion())
	})
}

func TestTheCauseOfAListIsTheFirstThatApplies(t *testing.T) {
	reversed, refused, rules := delta.CauseHistoryReversed, delta.CauseForbidden, delta.CauseConfiguration
	for _, test := range []struct {
		options Options
		want    delta.Cause
		detail  string
	}{
		{Options{ResourceVersion: "900", Interrupted: refused, ListCause: rules, History: &historian{proof: "another stream has seen it"}}, reversed, "another stream has seen it"},
		{Options{ResourceVersion: "900", Interrupted: refused, ListCause: rules}, reversed, "the list is at resource version 2, the record at 900"},
		{Options{ResourceVersion: "1", Interrupted: refused, ListCause: rules}, refused, "too old"},
		{Options{ResourceVersion: "1", ListCause: rules}, delta.CauseExpired, "too old"},
		{Options{Interrupted: refused, ListCause: rules}, rules, ""},
		{Options{}, delta.CauseFirstList, ""},
	} {
		inBubble(t, func(t *testing.T) {
			s, store := withPods(2), &ledger{}
			s.forget()
			s.onWatch = func(o metav1.ListOptions) watchPlan {
				if o.ResourceVersion == "900" {
					return watchPlan{refuse: expired()}
				}
				return watchPlan{}
			}
			start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, test.options))
			begun := store.find("begin")
			require.Equal(t, test.want, begun.cause, "%+v", test.options)
			require.Contains(t, begun.detail, test.detail)
		})
	}
}

func TestAListWithoutAResourceVersionIsAnInterruption(t *testing.T) {
	for _, rv := range []string{"", "0"} {
		inBubble(t, func(t *testing.T) {
			store := &ledger{}
			lw := &cache.ListWatch{ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				return podList(rv, "", pod("a", "")), nil
			}}
			start(t, NewReflector(lw, &v1.Pod{}, store, 0))
			elapse(5 * time.Minute)
			require.Equal(t, []string{"interrupted undecodable"}, store.calls())
			require.Contains(t, store.find("interrupted").detail, "this resource cannot be recorded")
		})
	}
}

func TestAnAnswerThatIsNotAListIsAnInterruption(t *testing.T) {
	table := &unstructured.UnstructuredList{Object: map[string]any{"apiVersion": "meta.k8s.io/v1", "kind": "Table"}}
	for _, answer := range []runtime.Object{nil, table, &v1.Pod{}} {
		inBubble(t, func(t *testing.T) {
			store := &ledger{}
			lw := &cache.ListWatch{ListFunc: func(metav1.ListOptions) (runtime.Object, error) { return answer, nil }}
			start(t, NewReflector(lw, nil, store, 0))
			require.Equal(t, []string{"interrupted undecodable"}, store.calls())
		})
	}
}

// partialList is a list that could not decode all its items.
type partialList struct {
	*v1.PodList
	errs []error
}

func (l *partialList) Undecodable() []error { return l.errs }

// unreadPod is an error that knows its object.
type unreadPod struct{ error }

func (unreadPod) ObjectName() cache.ObjectName { return cache.ObjectName{Namespace: "ns", Name: "x"} }

func TestItemsThatCouldNotBeDecodedAreReported(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := &ledger{}
		lw := &cache.ListWatch{ListFunc: func(o metav1.ListOptions) (runtime.Object, error) {
			if o.Continue == "" {
				return &partialList{podList("7", "more", pod("a", "1")), []error{unreadPod{errors.New("item 1: bad utf-8")}}}, nil
			}
			return &partialList{podList("7", "", pod("b", "2")), []error{errors.New("item 9: depth")}}, nil
		}, WatchFunc: idleWatch}
		var counted int
		start(t, NewReflectorWithOptions(lw, nil, store, Options{Hooks: Hooks{Undecodable: func(items int) { counted += items }}}))
		require.Equal(t, 2, counted)
		require.Equal(t, []string{"begin first_list", "unread ns/x", "page a@1", "unread", "page b@2", "interrupted undecodable", "end 7"}, store.calls())
		require.Contains(t, store.find("begin").detail, "item 1: bad utf-8")
		require.Contains(t, store.find("interrupted").detail, "item 9: depth")
	})
}

func TestAListThatFailsIsRetriedFromItsFirstPage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, failures := withPods(3), &ledger{}, 2
		s.onList = func(o metav1.ListOptions) error {
			if failures > 0 && (o.Continue != "") == (failures == 1) {
				failures--
				return apierrors.NewServiceUnavailable("starting")
			}
			return nil
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{PageSize: 2}))
		elapse(time.Minute)
		require.Equal(t, []string{"begin first_list", "page a@1 b@2", "abort",
			"begin first_list", "page a@1 b@2", "page c@3", "end 3"}, store.calls())
	})
}

// idleWatch is a watch that sends nothing until it is stopped.
func idleWatch(metav1.ListOptions) (watch.Interface, error) { return watch.NewFake(), nil }

func TestAWatchThatKeepsEndingDuringAListIsNotOpenedInABusyLoop(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store, atPage := withPods(3), &ledger{}, make(chan struct{})
		store.decide = func(c call) error {
			if c.method == "page" {
				<-atPage
			}
			return nil
		}
		s.onWatch = func(metav1.ListOptions) watchPlan { return watchPlan{immediate: true} }
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{PageSize: 2}))
		elapse(20 * lookaheadPause)
		require.LessOrEqual(t, len(s.watched()), 21)
		require.GreaterOrEqual(t, len(s.watched()), 10)
		close(atPage)
	})
}

func TestAListBeginsAtTheCompletePosition(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		s.write(watch.Added, "b")
		s.write(watch.Deleted, "a", "b")
		s.onWatch = plans(watchPlan{cutAfter: 3}, watchPlan{refuse: expired()})
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
		require.Equal(t, []string{"add a@10", "add b@11", "delete a@12", "begin expired from 11", "page", "end 12"}, store.calls())
	})
}

func TestARejectedListIsNoEvidenceAboutAPlace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.onList = func(metav1.ListOptions) error { return apierrors.NewBadRequest("no") }
		start(t, NewReflector(s, &v1.Pod{}, store, 0))
		elapse(time.Hour)
		require.Equal(t, []string{"interrupted unreachable"}, store.calls())
		require.Contains(t, store.find("interrupted").detail, "list *v1.Pod: no")
	})
}
