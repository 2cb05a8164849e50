package reflector

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
)

func TestAfterAWorkingWatchTheNextFailureHasTheFirstPause(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, tries := withPods(2), []time.Time{}
		working := false
		s.onWatch = func(metav1.ListOptions) watchPlan {
			tries = append(tries, time.Now())
			switch {
			case working:
				return watchPlan{cutAfter: 1}
			default:
				return watchPlan{refuse: refused()}
			}
		}
		backoff := &wait.Backoff{Duration: time.Second, Factor: 2, Steps: 6, Cap: time.Minute}
		start(t, NewReflectorWithOptions(s, &v1.Pod{}, &ledger{}, Options{ResourceVersion: "2", Backoff: backoff}))
		elapse(10 * time.Second)
		s.set(func() { working = true })
		elapse(20 * time.Second)
		s.set(func() { working, tries = false, nil })
		s.write(watch.Modified, "a") // and the watch ends
		elapse(2 * time.Second)
		s.set(func() {
			require.Len(t, tries, 2)
			require.Equal(t, time.Second, tries[1].Sub(tries[0]))
		})
	})
}
