package capture

import (
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/serve"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The capture of a server that serves a set is that set.
func TestACaptureIsTheSetThatWasServed(t *testing.T) { requireCapture(t, nil) }

func TestAWatchThatTheServerEndsIsOpenedAgainWithoutAGap(t *testing.T) {
	cut := &cutter{cut: map[string]int{}}
	requireCapture(t, cut)
	require.Greater(t, len(cut.cut), 3)
}

// A cutter ends the first watch of each path after one event, and puts off the second. An API server does so when a definition changes.
type cutter struct {
	http.RoundTripper
	mu  sync.Mutex // protects cut
	cut map[string]int
}

func (c *cutter) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Get("watch") == "" {
		return c.RoundTripper.RoundTrip(req)
	}
	c.mu.Lock()
	c.cut[req.URL.Path]++
	n := c.cut[req.URL.Path]
	c.mu.Unlock()
	if n == 2 {
		return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"0"}}, Body: http.NoBody, Request: req}, nil
	}
	resp, err := c.RoundTripper.RoundTrip(req)
	if err == nil && n == 1 {
		resp.Body = &oneLine{ReadCloser: resp.Body}
	}
	return resp, err
}

// oneLine is a body that ends after its first line.
type oneLine struct {
	io.ReadCloser
	ended bool
}

func (o *oneLine) Read(into []byte) (int, error) {
	if o.ended || len(into) == 0 {
		return 0, io.EOF
	}
	n, err := o.ReadCloser.Read(into[:1])
	o.ended = n == 1 && into[0] == '\n'
	return n, err
}

func requireCapture(t *testing.T, cut *cutter) {
	t.Helper()
	const events = 400
	want, err := data.Generate(data.Settings{Seed: 4, Live: 150, Events: events})
	require.NoError(t, err)
	server, err := serve.Start(want, serve.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	config, err := clientcmd.RESTConfigFromKubeConfig(server.Kubeconfig())
	require.NoError(t, err)
	if cut != nil {
		config.Wrap(func(rt http.RoundTripper) http.RoundTripper { cut.RoundTripper = rt; return cut })
	}

	c, err := Start(t.Context(), config, t.TempDir())
	require.NoError(t, err)
	server.Go()
	require.Eventually(t, func() bool { return c.Events() == events }, 5*time.Minute, 10*time.Millisecond)
	got, err := c.Stop()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "set.zst")
	require.NoError(t, data.Write(path, got, "v1.37.1"))
	got, err = data.Open(path)
	require.NoError(t, err)

	// By name, because a server's discovery has its own order.
	name := func(s data.Set, e data.Event) string { return s.Resources()[e.Resource].Kind }
	was := map[string]string{}
	for e := range want.First() {
		was[e.UID] = name(want, e) + string(e.Object)
	}
	for e := range got.First() {
		require.Equal(t, was[e.UID], name(got, e)+string(e.Object))
		delete(was, e.UID)
	}
	require.Empty(t, was)
	var all []data.Event
	for e, err := range want.Events() {
		require.NoError(t, err)
		all = append(all, e)
	}
	n := 0
	for e, err := range got.Events() {
		require.NoError(t, err)
		require.Equal(t, []string{name(want, all[n]), string(all[n].Type), all[n].UID, string(all[n].Object)}, []string{name(got, e), string(e.Type), e.UID, string(e.Object)})
		require.Equal(t, all[n].RV, e.RV)
		n++
	}
	require.Equal(t, events, n)
}

func TestAWatchThatEndsAndCannotBeOpenedAgainIsNoCapture(t *testing.T) {
	want, err := data.Generate(data.Settings{Seed: 4, Live: 150, Events: 10})
	require.NoError(t, err)
	server, err := serve.Start(want, serve.Options{})
	require.NoError(t, err)
	config, err := clientcmd.RESTConfigFromKubeConfig(server.Kubeconfig())
	require.NoError(t, err)
	c, err := Start(t.Context(), config, t.TempDir())
	require.NoError(t, err)
	require.NoError(t, server.Close())
	require.ErrorContains(t, c.group.Wait(), "has ended")
	_, err = c.Stop()
	require.ErrorContains(t, err, "has ended")
}

func TestAWatchThatGoesOnFromAListWithOtherObjectsIsNoCapture(t *testing.T) {
	want, err := data.Generate(data.Settings{Seed: 4, Live: 150, Events: 10})
	require.NoError(t, err)
	server, err := serve.Start(want, serve.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, server.Close()) }()
	config, err := clientcmd.RESTConfigFromKubeConfig(server.Kubeconfig())
	require.NoError(t, err)
	config.Wrap(func(rt http.RoundTripper) http.RoundTripper { return &expirer{RoundTripper: rt} })
	c, err := Start(t.Context(), config, t.TempDir())
	require.NoError(t, err)
	require.ErrorContains(t, c.group.Wait(), "a list shows objects that no watch has shown")
	_, err = c.Stop()
	require.ErrorContains(t, err, "make the capture again")
}

// An expirer refuses each watch as too old, and gives no objects in the lists after that.
type expirer struct {
	http.RoundTripper
	refused atomic.Bool
}

func (e *expirer) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	body := `{"metadata":{"resourceVersion":"1000000"},"items":[]}`
	switch {
	case query.Get("watch") != "":
		e.refused.Store(true)
		body = `{"type":"ERROR","object":{"kind":"Status","code":410,"message":"too old"}}` + "\n"
	case !e.refused.Load() || query.Get("limit") == "":
		return e.RoundTripper.RoundTrip(req)
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(body)), Request: req}, nil
}
