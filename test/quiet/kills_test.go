package quiet_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// shareAway is for which share of the history no recorder runs: just under a third.
const shareAway = 0.32

// TestAKilledRecorderOfAQuietClusterOpensNoGap kills it at random moments. Only the API server itself writes.
func TestAKilledRecorderOfAQuietClusterOpensNoGap(t *testing.T) {
	if *kills == 0 {
		t.Skip("a run of minutes, not a test: make quiet")
	}
	w := newWorld(t, "--etcd-compaction-interval="+compact.String())
	w.createEvents(t)
	most := *alive
	if most == 0 {
		most = *compact + 30*time.Second
	}
	const least = 10 * time.Second
	failed := 0
	for kill := range *kills {
		recorder := w.record(t)
		began := time.Now()
		elapse(t, least+time.Duration(rand.Int64N(int64(most-least))))
		lived := time.Since(began)
		recorder.Kill(t)
		requests, of := w.requests(t, began, time.Now())
		gaps := w.gaps(t)
		failed = len(gaps)
		fmt.Printf("kill %2d after %5.1f s: %3.0f requests a minute %v, gaps so far: %d\n", kill+1, lived.Seconds(), float64(requests)/lived.Minutes(), of, len(gaps))
		elapse(t, time.Duration(float64(*compact)*shareAway))
	}
	w.record(t).Terminate(t)
	require.Empty(t, w.gaps(t), "gaps at the last kill: %d", failed)
}

func (w *world) createEvents(t *testing.T) {
	t.Helper()
	gvr := schema.GroupVersionResource{Version: "v1", Resource: "events"}
	var g errgroup.Group
	g.SetLimit(20)
	for i := range max(*events, 1) {
		g.Go(func() error {
			_, err := w.in(gvr, "default").Create(t.Context(), event(fmt.Sprint("event-", i)), metav1.CreateOptions{})
			return err
		})
	}
	require.NoError(t, g.Wait())
}
