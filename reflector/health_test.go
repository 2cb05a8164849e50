package reflector

import (
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/delta"
)

// refusals are the server's ways to deny a resource, by cause.
func refusals() map[string]error {
	return map[string]error{
		string(delta.CauseForbidden):    forbidden(),
		string(delta.CauseUnauthorized): apierrors.NewUnauthorized("who are you"),
		string(delta.CauseNotFound):     apierrors.NewNotFound(podResource, ""),
	}
}

func TestARefusedListIsAnInterruptionThatAFirstListEnds(t *testing.T) {
	for cause, refusal := range refusals() {
		t.Run(cause, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, store := newServer(9), &ledger{}
				denied := true
				s.onList = func(metav1.ListOptions) error {
					if denied {
						return refusal
					}
					return nil
				}
				start(t, NewReflector(s, &v1.Pod{}, store, 0))
				require.Equal(t, []string{"interrupted " + cause}, store.calls())
				elapse(time.Hour)
				_, lists := s.requests()
				require.Less(t, lists, 65, "asked slowly")
				require.Greater(t, lists, 30, "but asked")
				s.set(func() { denied = false })
				elapse(2 * time.Minute)
				require.Equal(t, []string{"interrupted " + cause, "begin first_list", "page", "end 9"}, store.calls())
			})
		})
	}
}

func TestARefusedWatchThatIsAllowedAgainHasLostNothing(t *testing.T) {
	for cause, refusal := range refusals() {
		for _, plan := range []watchPlan{{refuse: refusal}, {immediate: true, sharply: status(refusal)}} {
			inBubble(t, func(t *testing.T) {
				s, store := newServer(9), &ledger{}
				denied := true
				s.onWatch = func(metav1.ListOptions) watchPlan {
					if denied {
						return plan
					}
					return watchPlan{}
				}
				start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
				s.write(watch.Added, "a")
				elapse(10 * time.Minute)
				require.Equal(t, []string{"interrupted " + cause}, store.calls())
				s.set(func() { denied = false })
				elapse(2 * time.Minute)
				require.Equal(t, []string{"interrupted " + cause, "resumed", "add a@10"}, store.calls())
				require.Empty(t, s.listed())
			})
		}
	}
}

// everyFourSeconds is a backoff with which the fourth refusal interrupts a stream.
var everyFourSeconds = &wait.Backoff{Duration: 4 * time.Second, Factor: 1, Steps: math.MaxInt}

func forbiddenFourTimes() []watchPlan {
	return slices.Repeat([]watchPlan{{refuse: forbidden()}}, 4)
}

func TestARefusalThatPassesWithinSecondsIsNoInterruption(t *testing.T) {
	passing := refusals()
	delete(passing, string(delta.CauseNotFound)) // means that the resource is gone
	for cause, refusal := range passing {
		t.Run(cause, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, store := newServer(9), &ledger{}
				away, refusing := watchPlan{refuse: refused()}, watchPlan{refuse: refusal}
				s.onWatch = plans(refusing, away, away, away, refusing, refusing, refusing)
				start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", Backoff: everyFourSeconds}))
				s.write(watch.Added, "a")
				elapse(time.Minute)
				require.Equal(t, []string{"add a@10"}, store.calls())
			})
		})
	}
}

func TestAnIdleStreamCountsAsResumedAfterAWhile(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.onWatch = plans(forbiddenFourTimes()...)
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", Backoff: everyFourSeconds}))
		elapse(17 * time.Second)
		require.Len(t, s.watched(), 5)
		require.Equal(t, []string{"interrupted forbidden"}, store.calls())
		elapse(worksAfter)
		require.Equal(t, []string{"interrupted forbidden", "resumed"}, store.calls())
	})
}

func TestAHistoryThatExpiredDuringARefusalIsListedWithTheRefusal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.onWatch = plans(forbiddenFourTimes()...)
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", Backoff: everyFourSeconds}))
		s.write(watch.Added, "a")
		s.forget()
		elapse(time.Minute)
		require.Equal(t, []string{"interrupted forbidden", "begin forbidden from 9", "page a@10", "end 10"}, store.calls())
		require.Contains(t, store.find("begin").detail, "too old resource version")
	})
}

func TestAServerThatIsUnreachableForAWhileIsAnInterruption(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		down := true
		s.onWatch = func(metav1.ListOptions) watchPlan {
			if down {
				return watchPlan{refuse: refused()}
			}
			return watchPlan{}
		}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
		elapse(unreachableAfter - time.Second)
		require.Empty(t, store.calls(), "a hiccup is not reported")
		elapse(10 * time.Minute)
		require.Equal(t, []string{"interrupted unreachable"}, store.calls())
		s.set(func() { down = false })
		s.write(watch.Added, "a")
		elapse(time.Minute)
		require.Equal(t, []string{"interrupted unreachable", "resumed", "add a@10"}, store.calls())
	})
}

func TestARefusalReplacesAnOutageAsCauseAndNotViceVersa(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		answer := refused()
		s.onWatch = func(metav1.ListOptions) watchPlan { return watchPlan{refuse: answer} }
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9"}))
		elapse(5 * time.Minute)
		s.set(func() { answer = forbidden() })
		elapse(5 * time.Minute)
		s.set(func() { answer = refused() })
		elapse(5 * time.Minute)
		require.Equal(t, []string{"interrupted unreachable", "interrupted forbidden"}, store.calls())
	})
}

func TestAnInterruptionThatTheStoreRejectsIsRepeated(t *testing.T) {
	for _, method := range []string{"interrupted", "resumed"} {
		inBubble(t, func(t *testing.T) {
			s, failures := newServer(9), 1
			store := &ledger{decide: func(c call) error {
				if c.method == method && failures > 0 {
					failures--
					return errors.New("database is down")
				}
				return nil
			}}
			s.onWatch = plans(append(forbiddenFourTimes(), watchPlan{refuse: forbidden()})...)
			start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", Backoff: everyFourSeconds}))
			elapse(5 * time.Minute)
			require.Equal(t, []string{"interrupted forbidden", "resumed"}, store.calls())
		})
	}
}

func TestAStreamThatFailsAgainAfterItHasWorkedIsInterruptedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, store := newServer(9), &ledger{}
		s.onWatch = plans(slices.Concat(forbiddenFourTimes(), []watchPlan{{cutAfter: 1}}, forbiddenFourTimes())...)
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, Options{ResourceVersion: "9", Backoff: everyFourSeconds}))
		s.write(watch.Added, "a")
		elapse(time.Minute)
		s.write(watch.Added, "b")
		synctest.Wait()
		require.Equal(t, []string{"interrupted forbidden", "resumed", "add a@10",
			"interrupted forbidden", "resumed", "add b@11"}, store.calls())
	})
}

func TestAnAbsurdRetryAfterDoesNotStopAStreamForGood(t *testing.T) {
	r := NewReflector(newServer(9), &v1.Pod{}, &ledger{}, 0)
	require.GreaterOrEqual(t, r.retries.delayAfter(tooMany(1_000_000), false), maxRetryAfter)
	require.LessOrEqual(t, r.retries.delayAfter(tooMany(1_000_000), false), 2*maxRetryAfter)
}

func TestAnEarlierInterruptionIsTakenBackWhenTheStreamGoesOn(t *testing.T) {
	for name, options := range map[string]Options{
		"from a position":               {ResourceVersion: "9"},
		"from before the first objects": {StartResourceVersion: "9"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				s, store := newServer(9), &ledger{}
				options.Interrupted = delta.CauseNotFound
				start(t, NewReflectorWithOptions(s, &v1.Pod{}, store, options))
				s.write(watch.Added, "a")
				elapse(time.Minute)
				require.Equal(t, []string{"resumed", "add a@10"}, store.calls())
			})
		})
	}
}
