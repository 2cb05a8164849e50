package quiet_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

const (
	// quietDefinitions raise the number of streams without writes to 60 and more.
	quietDefinitions = 12
	warmUp           = 40 * time.Second
	serverAway       = 45 * time.Second
	// liveWithin and requestsAtMost are what a return of the API server may take.
	liveWithin     = 30 * time.Second
	requestsAtMost = 2500
)

// TestAServerThatReturnsIsNotFlooded has the API server go away under load, shortly after the recorder was started.
func TestAServerThatReturnsIsNotFlooded(t *testing.T) {
	if *returns == 0 {
		t.Skip("a run of minutes, not a test: make quiet-return")
	}
	for i := range *returns {
		t.Run(fmt.Sprint(i+1), returnOnce)
	}
}

func returnOnce(t *testing.T) {
	w := newWorld(t)
	for i := range quietDefinitions {
		w.define(t, fmt.Sprint("quiet", i), fmt.Sprint("Quiet", i))
	}
	w.define(t, "busy", "Busy")
	recorder := w.record(t)
	stop := w.load(t)
	elapse(t, warmUp/4)
	w.undefine(t, "busy")
	w.define(t, "busy", "Busy")
	elapse(t, warmUp)
	recorder.Kill(t)
	recorder = w.record(t)
	elapse(t, 5*time.Second)
	require.NoError(t, w.plane.APIServer.Kill())
	elapse(t, serverAway)
	began := time.Now()
	require.NoError(t, w.plane.APIServer.Start(t.Context()))
	returned := time.Now()
	if *etcd {
		require.NoError(t, w.plane.Etcd.Restart(t.Context()))
		returned = time.Now()
	}
	streams, live := w.awaitLive(t, recorder)
	end := time.Now()
	stop()
	requests, of := w.requests(t, began, end)
	gaps := w.gaps(t)
	fmt.Printf("%d streams live after %.1f s, by %d requests %v, gaps: %v\n", streams, live.Sub(returned).Seconds(), requests, of, gaps)
	for _, line := range logged(recorder, "history recovered", "history cannot be recovered") {
		t.Log(line)
	}
	require.GreaterOrEqual(t, streams, 60+len(kinds))
	require.Empty(t, gaps)
	require.LessOrEqual(t, live.Sub(returned), liveWithin)
	require.LessOrEqual(t, requests, requestsAtMost)
	recorder.Terminate(t)
}

// awaitLive returns the number of streams, and since when all are followed without a break. The break-free time is long enough for the
// server to refuse a watch.
func (w *world) awaitLive(t *testing.T, p *recordertest.Process) (streams int, since time.Time) {
	t.Helper()
	const steady = 3 * time.Second
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.Now().Add(5 * time.Minute)
	for since.IsZero() || time.Since(since) < steady {
		up, all := 0, 0
		for name, value := range p.Metrics() {
			if strings.HasPrefix(name, "kuberewind_stream_up{") {
				all++
				up += int(value)
			}
		}
		streams = all
		switch {
		case all == 0 || up < all:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d streams are followed five minutes after the return", up, all)
		}
		<-ticker.C
	}
	return streams, since
}

// logged are the lines of the log with one of the words.
func logged(p *recordertest.Process, words ...string) (found []string) {
	for line := range strings.Lines(p.Log()) {
		for _, word := range words {
			if strings.Contains(line, word) {
				found = append(found, line)
			}
		}
	}
	return found
}
