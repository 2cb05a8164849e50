package system_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/recordertest"
)

// restarts is how many times the API server is restarted under load.
var restarts = flag.Int("restarts", 2, "how many times TestRestartsOfTheAPIServerOpenNoGap restarts it")

// churn is a workload that minds no failure: a server that restarts refuses or breaks off writes, some of which it has done.
type churn struct {
	client dynamic.Interface
	wrote  atomic.Int64
	stop   func() // returns when nothing is written any more
}

// churned are the resources that it writes to: a cached one, an uncached one (Events), and one that is cached only when a
// client asks for it (widgets).
var churned = []schema.GroupVersionResource{configMaps, secrets, pods, events, leases, widgets}

// churn writes until it is stopped, or the test ends.
func (w *world) churn(t *testing.T, perSecond int) *churn {
	t.Helper()
	config := rest.CopyConfig(w.plane.Config())
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{}
	client, err := dynamic.NewForConfig(config)
	require.NoError(t, err)
	load := &churn{client: client}
	ctx, cancel := context.WithCancel(t.Context())
	var g errgroup.Group
	g.Go(func() error { return load.run(ctx, perSecond) })
	load.stop = func() {
		cancel()
		require.NoError(t, g.Wait())
	}
	t.Cleanup(load.stop)
	return load
}

// await waits for so many writes more.
func (c *churn) await(t *testing.T, writes int64) {
	t.Helper()
	target := c.wrote.Load() + writes
	eventually(t.Context(), t, "progress of the workload", func() bool { return c.wrote.Load() >= target })
}

// run makes about perSecond writes a second with several clients until ctx ends.
func (c *churn) run(ctx context.Context, perSecond int) error {
	const clients = 5
	g, ctx := errgroup.WithContext(ctx)
	for id := range clients {
		g.Go(func() error {
			random := rand.New(rand.NewPCG(seed, uint64(id)))
			pace := time.NewTicker(clients * time.Second / time.Duration(perSecond))
			defer pace.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-pace.C:
					c.write(ctx, random, id)
				}
			}
		})
	}
	return g.Wait()
}

// write makes, changes or deletes one of a few objects; many live for less time than a restart takes.
func (c *churn) write(ctx context.Context, random *rand.Rand, id int) {
	// A server that hangs must not keep the others from being written to.
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	gvr := churned[random.IntN(len(churned))]
	in, name := c.client.Resource(gvr).Namespace("default"), fmt.Sprintf("churn-%d-%d", id, random.IntN(8))
	body := fmt.Sprintf(`{"metadata":{"labels":{"turn":"%d"}}}`, random.Uint32())
	_, err := in.Patch(ctx, name, types.MergePatchType, []byte(body), metav1.PatchOptions{})
	switch {
	case err != nil:
		_, err = in.Create(ctx, template(gvr, "default", name), metav1.CreateOptions{})
	case random.IntN(3) == 0:
		err = in.Delete(ctx, name, noGrace())
	}
	if err == nil {
		c.wrote.Add(1)
	}
}

// newRestarted is a world with a recorder and a workload, whose API server is going to be restarted.
func newRestarted(t *testing.T) (*world, *recordertest.Process, *groundTruth, *churn) {
	t.Helper()
	w, recorder := recordedLent(t)
	w.act(t).defineWidgets()
	truth := newGroundTruth(t, w)
	return w, recorder, truth, w.churn(t, 100)
}

// TestRestartsOfTheAPIServerOpenNoGap: after each, the API server refuses every position, while etcd has all of it (I3).
func TestRestartsOfTheAPIServerOpenNoGap(t *testing.T) {
	t.Parallel()
	w, recorder, truth, load := newRestarted(t)
	lists := len(w.lists(t))
	exact := w.exactLists(t)
	for round := range *restarts {
		load.await(t, 300)
		started := time.Now()
		if round%2 == 0 {
			require.NoError(t, w.plane.APIServer.Restart(t.Context()))
		} else {
			require.NoError(t, w.plane.APIServer.Kill())
			require.NoError(t, w.plane.APIServer.Start(t.Context()))
		}
		t.Logf("restart %d took %s", round+1, time.Since(started).Round(time.Millisecond))
	}
	load.await(t, 100)
	load.stop()
	truth.compare(t)
	w.requireNoRelist(t, lists)
	done := recoveredBy(recorder)
	t.Logf("%d writes, %d restarts: %+v, and %d requests in all", load.wrote.Load(), *restarts, done, w.exactLists(t)-exact)
	require.Positive(t, done.versions, "nothing had to be recovered: the test shows nothing")
	recorder.Terminate(t)
}

// TestARestartWhileNoRecorderRunsOpensNoGap: the position comes from the record, and which streams are busy as well.
func TestARestartWhileNoRecorderRunsOpensNoGap(t *testing.T) {
	t.Parallel()
	w, recorder, truth, load := newRestarted(t)
	load.await(t, 100)
	recorder.Terminate(t)
	lists := len(w.lists(t))
	load.await(t, 300)
	require.NoError(t, w.plane.APIServer.Restart(t.Context()))
	load.await(t, 100)
	recorder = w.recordReady(t)
	load.await(t, 100)
	load.stop()
	truth.compare(t)
	w.requireNoRelist(t, lists)
	t.Logf("%d writes: %+v", load.wrote.Load(), recoveredBy(recorder))
	recorder.Terminate(t)
}

// exactLists is how many lists at an exact revision, or of one object, the recorder has asked for.
func (w *world) exactLists(t *testing.T) (n int) {
	t.Helper()
	requests, err := w.plane.APIServer.Requests()
	require.NoError(t, err)
	for _, r := range requests {
		if r.User == recorderUser && r.Verb == "list" && r.Code == http.StatusOK &&
			(strings.Contains(r.URI, "resourceVersionMatch=Exact") || strings.Contains(r.URI+"&", "limit=1&")) {
			n++
		}
	}
	return n
}

// recovered is what the log says about recoveries.
type recovered struct{ recoveries, revisions, versions, requests int }

func recoveredBy(p *recordertest.Process) (all recovered) {
	for text := range strings.Lines(p.Log()) {
		var line struct {
			Msg                           string
			Revisions, Versions, Requests int
		}
		if json.Unmarshal([]byte(text), &line) == nil && line.Msg == "history recovered" {
			all.recoveries++
			all.revisions += line.Revisions
			all.versions += line.Versions
			all.requests += line.Requests
		}
	}
	return all
}
