package reflector

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// plans gives each watch in turn its plan, and no plan to later watches.
func plans(given ...watchPlan) func(metav1.ListOptions) watchPlan {
	return func(metav1.ListOptions) watchPlan {
		if len(given) == 0 {
			return watchPlan{}
		}
		plan := given[0]
		given = given[1:]
		return plan
	}
}

// scripted returns a source with one watch that the test feeds, and no list.
func scripted() (*cache.ListWatch, *watch.FakeWatcher) {
	w := watch.NewFake()
	return &cache.ListWatch{
		ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { return nil, errors.New("no list") },
		WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return w, nil },
	}, w
}

func TestACleanEndIsFollowedByAWatchFromTheLastVersion(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.onWatch = plans(watchPlan{cutAfter: 2}, watchPlan{cutAfter: 1})
		s.write(watch.Added, "a")
		s.write(watch.Modified, "a")
		s.write(watch.Modified, "a")
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
		require.Equal(t, []string{"add a@10", "update a@11", "update a@12"}, store.calls())
		watches, lists := s.requests()
		require.Equal(t, []string{"9", "11", "12"}, watches)
		require.Zero(t, lists)
	})
}

func TestAWatchThatEndsAtOnceIsAnErrorWithAPause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServer(9)
		s.onWatch = plans(watchPlan{immediate: true})
		r := NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "9"})
		require.ErrorIs(t, r.ListAndWatchWithContext(t.Context()), errShortWatch)
	})
}

func TestTheWatchTimeoutIsRandomBetweenTheMinimumAndTwiceAsMuch(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServer(9)
		s.onWatch = func(metav1.ListOptions) watchPlan { return watchPlan{immediate: true} }
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "9", MinWatchTimeout: 40 * time.Second}))
		elapse(30 * time.Minute)
		different := map[int64]bool{}
		for _, options := range s.watched() {
			require.GreaterOrEqual(t, *options.TimeoutSeconds, int64(40))
			require.LessOrEqual(t, *options.TimeoutSeconds, int64(80))
			different[*options.TimeoutSeconds] = true
		}
		require.Greater(t, len(different), 1)
	})
}

func TestAWatchThatOutlivesItsTimeoutIsCutAndOpenedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServer(9)
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "9", MinWatchTimeout: time.Minute}))
		elapse(2*time.Minute + watchGrace)
		require.Len(t, s.watched(), 2)
		require.Equal(t, 1, s.count(&s.open))
	})
}

func TestAfterGoneNewConnectionsComeBeforeAList(t *testing.T) {
	gone := map[string]watchPlan{
		"as an answer":  {refuse: expired()},
		"in the stream": {immediate: true, sharply: status(expired())},
		"by its old name": {refuse: &apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonGone}}},
	}
	for name, plan := range gone {
		t.Run(name+", and the history is there", func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, other, store := newServer(9), newServer(9), &ledger{}
				s.onWatch = plans(plan)
				other.onWatch = plans(plan)
				other.write(watch.Added, "a")
				start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{
					ResourceVersion: "9", Fresh: func() cache.ListerWatcher { return other },
				}))
				elapse(time.Minute)
				require.Equal(t, []string{"add a@10"}, store.calls())
				watches, _ := other.requests()
				require.Equal(t, []string{"9", "9"}, watches)
			})
		})
		t.Run(name+", and the history is gone", func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, other, store := newServer(9), newServer(9), &ledger{}
				s.write(watch.Added, "a")
				s.onWatch = plans(plan)
				other.onWatch = plans(plan, plan)
				start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{
					ResourceVersion: "9", Fresh: func() cache.ListerWatcher { return other },
				}))
				elapse(2 * freshPause)
				require.Equal(t, []string{"begin expired from 9", "page a@10", "end 10"}, store.calls())
				require.Len(t, other.watched(), 2)
				require.Equal(t, metav1.ListOptions{Limit: 500}, s.listed()[0])
			})
		})
	}
}

func TestGoneRightAfterAListGivesANewListAfterAPause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.onWatch = plans(watchPlan{refuse: expired()}, watchPlan{refuse: expired()})
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
		_, lists := s.requests()
		require.Equal(t, 1, lists)
		elapse(500 * time.Millisecond)
		_, lists = s.requests()
		require.Equal(t, 1, lists, "no list without a pause")
		s.write(watch.Added, "a")
		elapse(time.Minute)
		require.Equal(t, []string{"begin expired from 9", "page", "end 9",
			"begin expired from 9", "page a@10", "end 10"}, store.calls())
	})
}

func TestANewResourceIsWatchedFromItsOwnVersion(t *testing.T) {
	t.Run("nothing was missed", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			s, store := newServer(9), &ledger{}
			s.write(watch.Added, "a")
			start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{StartResourceVersion: "9"}))
			require.Equal(t, []string{"add a@10"}, store.calls())
			require.Empty(t, s.listed())
		})
	})
	t.Run("the version has expired", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			s, store := newServer(9), &ledger{}
			s.write(watch.Added, "a")
			s.forget()
			fresh := func() cache.ListerWatcher { t.Error("a new connection"); return s }
			start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{StartResourceVersion: "9", Fresh: fresh}))
			require.Equal(t, []string{"begin first_list", "page a@10", "end 10"}, store.calls())
		})
	})
	t.Run("the version has expired, and what came after is recovered", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			s, store := newServer(9), &ledger{}
			s.write(watch.Added, "a")
			s.write(watch.Modified, "a")
			s.write(watch.Deleted, "a")
			s.elsewhere()
			s.forget()
			start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{StartResourceVersion: "9", RecoverRevisions: 4}))
			require.Equal(t, []string{"add a@10", "update a@11", "delete a@12", "bookmark 13"}, store.calls())
			s.write(watch.Added, "a")
			elapse(0)
			require.Equal(t, "add a@14", store.calls()[4])
		})
	})
	t.Run("something is recorded", func(t *testing.T) {
		inBubble(t, func(t *testing.T) {
			s := newServer(9)
			start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{StartResourceVersion: "9", ResourceVersion: "12"}))
			require.Equal(t, "12", s.watched()[0].ResourceVersion)
		})
	})
}

func TestBusyServersGetTheTimeThatTheyRequest(t *testing.T) {
	for name, plan := range map[string]watchPlan{
		"as an answer":  {refuse: tooMany(20)},
		"in the stream": {immediate: true, sharply: status(tooMany(20))},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, store := newServer(9), &ledger{}
				s.onWatch = func(metav1.ListOptions) watchPlan { return plan }
				start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
				elapse(19 * time.Second)
				require.Len(t, s.watched(), 1)
				elapse(12 * time.Second)
				require.Len(t, s.watched(), 2)
				elapse(10 * time.Minute)
				_, lists := s.requests()
				require.Zero(t, lists, "overload is no reason to list")
			})
		})
	}
}

func TestOldEventsAreDeliveredAndDoNotMoveThePositionBack(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		lw, w := scripted()
		store := &ledger{}
		r := NewReflectorWithOptions(lw, &v1.Pod{}, store, Options{ResourceVersion: "10"})
		start(t, r)
		w.Add(pod("a", "12"))
		w.Modify(pod("b", "11"))
		w.Modify(pod("c", "12"))
		w.Action(watch.Bookmark, pod("", "9"))
		synctest.Wait()
		require.Equal(t, []string{"add a@12", "update b@11", "update c@12", "bookmark 9"}, store.calls())
		require.Equal(t, "12", r.LastSyncResourceVersion())
	})
}

func TestVersionsWithoutOrderAreTakenAsTheyCome(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		lw, w := scripted()
		store := &ledger{}
		r := NewReflectorWithOptions(lw, &v1.Pod{}, store, Options{ResourceVersion: "etag-z"})
		start(t, r)
		w.Add(pod("a", "etag-b"))
		w.Modify(pod("a", ""))
		w.Action(watch.Bookmark, pod("", ""))
		synctest.Wait()
		require.Equal(t, []string{"add a@etag-b", "update a@"}, store.calls())
		require.Equal(t, "etag-b", r.LastSyncResourceVersion())
		require.Equal(t, []string{"etag-b"}, store.versions)
	})
}

func TestDeletesThatShareAVersionAreAllDeliveredOnceAcrossACut(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		s.write(watch.Added, "b")
		s.write(watch.Added, "c")
		s.write(watch.Deleted, "a", "b", "c")
		s.onWatch = plans(watchPlan{cutAfter: 4}, watchPlan{cutAfter: 2})
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
		require.Equal(t, []string{"add a@10", "add b@11", "add c@12", "delete a@13", "delete b@13", "delete c@13"}, store.calls())
		watches, _ := s.requests()
		require.Equal(t, []string{"9", "12", "12"}, watches)
	})
}

func TestADeleteIsCompleteIfNothingFollowsForAWhile(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		s.write(watch.Deleted, "a")
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", MinWatchTimeout: time.Minute}))
		elapse(2*time.Minute + watchGrace)
		watches, _ := s.requests()
		require.Equal(t, []string{"9", "11"}, watches)
	})
}

func TestAStreamThatSentBookmarksAndFallsSilentIsReconnected(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, other := newServer(9), newServer(9)
		s.elsewhere()
		s.bookmark()
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{
			ResourceVersion: "9", MinWatchTimeout: time.Hour,
			Fresh: func() cache.ListerWatcher { return other },
		}))
		elapse(2 * time.Minute)
		s.elsewhere()
		s.bookmark()
		elapse(3*time.Minute - time.Second)
		require.Empty(t, other.watched())
		elapse(2 * time.Second)
		require.Len(t, other.watched(), 1)
		require.Equal(t, "11", other.watched()[0].ResourceVersion)
		require.Zero(t, s.count(&s.open))
	})
}

func TestAStreamThatNeverSentABookmarkMayBeSilent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServer(9)
		s.write(watch.Added, "a")
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "9", MinWatchTimeout: time.Hour}))
		elapse(50 * time.Minute)
		require.Len(t, s.watched(), 1)
	})
}

func TestHooksReportWatchesAndLists(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, calls := newServer(9), []string{}
		s.write(watch.Added, "a")
		s.onWatch = plans(watchPlan{immediate: true, sharply: status(expired())}, watchPlan{immediate: true, sharply: status(internal())})
		stop := start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "9", Hooks: Hooks{
			Relist:      func(cause delta.Cause) { calls = append(calls, "relist "+string(cause)) },
			WatchOpened: func(rv string) { calls = append(calls, "opened "+rv) },
			WatchClosed: func(err error) {
				if err == nil {
					calls = append(calls, "closed")
				} else {
					calls = append(calls, "failed")
				}
			},
		}}))
		elapse(time.Minute)
		stop()
		require.Equal(t, []string{"opened 9", "failed", "relist expired", "opened 10", "failed", "opened 10", "closed"}, calls)
	})
}

func TestANewResourceHasAPositionAfterItsFirstEvent(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.onWatch = plans(watchPlan{cutAfter: 1}, watchPlan{refuse: expired()})
		s.write(watch.Added, "a")
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{StartResourceVersion: "9"}))
		require.Equal(t, []string{"add a@10", "begin expired from 10", "page a@10", "end 10"}, store.calls())
	})
}

func TestExpiredHistoryIsRecoveredFromListsAtEachRevision(t *testing.T) {
	tests := map[string]struct {
		revisions int
		lose      func(*server)
		list      func(metav1.ListOptions) error
		want      []string
	}{
		"all of it":        {10, (*server).forget, nil, []string{"delete a@11", "delete b@11", "add c@12", "bookmark 14"}},
		"etcd has no more": {10, (*server).compact, nil, []string{"begin expired from 10", "page c@12", "end 14"}},
		"too far":          {3, (*server).forget, nil, []string{"begin expired from 10", "page c@12", "end 14"}},
		"not asked for":    {0, (*server).forget, nil, []string{"begin expired from 10", "page c@12", "end 14"}},
		"a list on the way fails": {10, (*server).forget, func(o metav1.ListOptions) error {
			if o.ResourceVersion == "13" {
				return internal()
			}
			return nil
		}, []string{"interrupted unreachable", "begin unreachable from 10", "page c@12", "end 14"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, store := newServer(8), &ledger{}
				s.onList = test.list
				s.write(watch.Added, "a")
				s.write(watch.Added, "b")
				s.write(watch.Deleted, "a", "b")
				s.write(watch.Added, "c")
				s.elsewhere()
				s.elsewhere()
				test.lose(s)
				start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "10", RecoverRevisions: test.revisions}))
				elapse(10 * time.Minute)
				require.Equal(t, test.want, store.calls())
			})
		})
	}
}

func TestARecoveryResumesAnInterruptedStream(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.onWatch = plans(forbiddenFourTimes()...)
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 10, Backoff: everyFourSeconds}))
		s.write(watch.Added, "a")
		s.forget()
		elapse(time.Minute)
		require.Equal(t, []string{"interrupted forbidden", "resumed", "add a@10", "bookmark 10"}, store.calls())
	})
}

func TestAServerWithInexactListsIsNotTrusted(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.write(watch.Added, "a")
		s.forget()
		// As client-go's own doubles do: any request gets the newest state
		lw := &cache.ListWatch{
			ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { return s.List(metav1.ListOptions{}) },
			WatchFunc: s.Watch,
		}
		start(t, NewReflectorWithOptions(lw, &v1.Pod{}, store, Options{ResourceVersion: "9", RecoverRevisions: 10}))
		require.Equal(t, []string{"begin expired from 9", "page a@10", "end 10"}, store.calls())
	})
}
