package resources

import (
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/stream"
	"github.com/kuberewind/kuberewind/internal/streamtest"
	"github.com/kuberewind/kuberewind/kube"
)

var defined = kube.Resource{Group: "example.com", Version: "v1", Name: "things", Kind: "Thing", Namespaced: true, DefinitionUID: "u2"}

// answering gives the handler an API server that answers every request by the function answer. The function that it returns lists the resource
// versions of the requests.
func answering(t *testing.T, h *Handler, answer func(w http.ResponseWriter, request *http.Request)) (asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var versions []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		mu.Lock()
		versions = append(versions, request.URL.Query().Get("resourceVersion"))
		mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		answer(w, request)
	}))
	t.Cleanup(server.Close)
	client, err := kube.NewClient(&rest.Config{Host: server.URL}, kube.Options{})
	require.NoError(t, err)
	t.Cleanup(client.Close)
	h.options.Client = client
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(versions)
	}
}

const tooLarge = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","message":"no","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`

const noThings, oneThing = `{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[]}`,
	`{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":"a","uid":"x","resourceVersion":"3"}}]}`

func TestTheHandlerAsksForOutlivingObjectsUntilThePatienceEnds(t *testing.T) {
	failed := func(reason string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `","message":"no"}`
	}
	for name, test := range map[string]struct {
		status  int
		body    string
		found   bool
		patient time.Duration // how long the Handler asks again; 0 if it does not
	}{
		"none":                            {http.StatusOK, noThings, false, 0},
		"one":                             {http.StatusOK, oneThing, true, 0},
		"one that cannot be read":         {http.StatusOK, `{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":7}}]}`, true, 0},
		"forgotten":                       {http.StatusGone, failed("Expired"), true, 0},
		"of a later history":              {http.StatusGatewayTimeout, tooLarge, true, 0},
		"refused":                         {http.StatusForbidden, failed("Forbidden"), true, refusedPatience},
		"not served yet":                  {http.StatusNotFound, failed("NotFound"), true, refusedPatience},
		"a conversion that does not work": {http.StatusInternalServerError, failed("InternalError"), true, refusedPatience},
		"an API server that is too busy":  {http.StatusServiceUnavailable, failed("ServiceUnavailable"), true, askedPatience},
		"no API server":                   {0, "", true, askedPatience},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHandler(Options{Log: slog.New(slog.DiscardHandler)})
			asked := answering(t, h, func(w http.ResponseWriter, _ *http.Request) {
				if test.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body)) // the client notices an error
			})
			found, err := h.outlived(t.Context(), defined, "7")
			require.Equal(t, []string{"7"}, slices.Compact(asked()))
			if test.patient > 0 {
				require.Error(t, err)
				other := defined
				other.DefinitionUID = "u3"
				elapse := func(d time.Duration) {
					a := h.asking[defined.GroupResource()]
					a.refused.since, a.asked.since = a.refused.since.Add(-d), a.asked.since.Add(-d)
				}
				elapse(test.patient)
				_, err = h.outlived(t.Context(), other, "7")
				require.Error(t, err, "the patience of another definition does not count")
				elapse(test.patient - time.Second)
				_, err = h.outlived(t.Context(), other, "7")
				require.Error(t, err)
				elapse(time.Second)
				found, err = h.outlived(t.Context(), other, "7")
			}
			require.NoError(t, err)
			require.Equal(t, test.found, found)
		})
	}
}

// A watch cache waits for a future version, and its error makes the client retry.
func TestTheHandlerDoesNotWaitForAFutureVersion(t *testing.T) {
	t.Parallel()
	h := NewHandler(Options{Log: slog.New(slog.DiscardHandler)})
	asked := answering(t, h, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Get("fieldSelector") == "" {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = w.Write([]byte(tooLarge)) // the client notices an error
	})
	found, err := h.outlived(t.Context(), defined, "7")
	require.NoError(t, err)
	require.True(t, found)
	require.Greater(t, len(asked()), 2)
}

func TestTheHandlerAsksTheServerOnceWhileTheDatabaseIsAway(t *testing.T) {
	s := newRecording(t)
	h := s.handler()
	body := noThings
	asked := answering(t, h, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
	first := func() (bool, string) {
		first, from, err := h.first(t.Context(), defined, "7")
		require.NoError(t, err)
		return first, from
	}
	for _, body = range []string{noThings, oneThing} {
		is, from := first()
		require.True(t, is)
		require.Equal(t, "7", from)
	}
	require.Equal(t, []string{"7"}, asked(), "it was answered")
	delete(h.asking, defined.GroupResource())
	_, from := first()
	require.Empty(t, from, "the stream is not complete from there")
	s.OpenStream(defined)
	is, _ := first()
	require.False(t, is)
	h.options.Streams = stream.NewSet(s.Options)
	is, _ = first()
	require.False(t, is, "an earlier recorder has followed the resource")
}

func TestARestartedAPIServerGetsTimeToServeAResource(t *testing.T) {
	var a asking
	notFound := apierrors.NewNotFound(defined.GroupResource(), "")
	require.False(t, a.over("u", notFound))
	a.refused.since = a.refused.since.Add(-refusedPatience)
	require.False(t, a.over("u", errors.New("connection refused")))
	require.False(t, a.over("u", notFound))
	a.asked.since = a.asked.since.Add(-askedPatience)
	require.True(t, a.over("u", errors.New("connection refused")), "changing errors must not extend the wait without a limit")
}

func TestTheHandlerAsksTheServerBeforeAStreamStartsWithoutAList(t *testing.T) {
	nothing, known := func(recording, *Handler, *deltafifo.FIFO) {}, func(*lifecycle.Facts) {}
	lives := func(rv int) func(recording, *Handler, *deltafifo.FIFO) {
		return func(s recording, h *Handler, fifo *deltafifo.FIFO) {
			require.NoError(t, fifo.Add(streamtest.Served(t, "Thing", "a", rv)))
		}
	}
	ended := func(f *lifecycle.Facts) { f.Ended = "12" }
	concluded := func(position string) func(*lifecycle.Facts) {
		return func(f *lifecycle.Facts) { f.Run, f.Position = lifecycle.Concluded, position }
	}
	spooled := func(position string) func(*lifecycle.Facts) {
		return func(f *lifecycle.Facts) { f.Spooled, f.Empty, f.Position = true, false, position }
	}
	for name, test := range map[string]struct {
		record func(recording, *Handler, *deltafifo.FIFO) // makes the record
		known  func(*lifecycle.Facts)                     // sets further facts
		since  string
		asked  string // the version that the server is asked for
		then   lifecycle.Action
	}{
		"it ended before the begin":                  {nothing, ended, "20", "20", lifecycle.Begin},
		"it ended, and the begin is not known":       {nothing, ended, "", "12", lifecycle.Resume},
		"it ended after the begin":                   {nothing, ended, "11", "12", lifecycle.Resume},
		"a list is due":                              {nothing, func(f *lifecycle.Facts) { f.Due.Cause = "not_found" }, "20", "", lifecycle.List},
		"it was watched to its end":                  {nothing, concluded("15"), "20", "20", lifecycle.Begin},
		"it was watched beyond the begin":            {nothing, concluded("25"), "20", "", lifecycle.Resume},
		"it was watched to its end, an object lives": {lives(9), concluded("15"), "20", "", lifecycle.Resume},
		"it was not watched to its end":              {nothing, func(f *lifecycle.Facts) { f.Run, f.Position = lifecycle.Followed, "15" }, "20", "", lifecycle.Resume},
		"it resumes in another version":              {nothing, concluded("15"), "", "", lifecycle.Resume},
		"its end was not followed":                   {nothing, known, "20", "20", lifecycle.Resume},
		"its end was not followed, an object lives":  {lives(11), known, "20", "", lifecycle.Resume},
		"its object was deleted":                     {recording.addAndDelete, known, "11", "12", lifecycle.Resume},
		"an earlier recorder has seen the end":       {recording.defineOnce, known, "20", "20", lifecycle.Begin},
		"the end was seen, and a list since":         {func(s recording, h *Handler, fifo *deltafifo.FIFO) { s.defineOnce(h, fifo); s.replace(fifo, "25") }, known, "20", "25", lifecycle.Resume},
		"the spool holds a part":                     {nothing, spooled("15"), "20", "20", lifecycle.Resume},
		"the spool holds only an interruption":       {nothing, spooled("10"), "20", "20", lifecycle.Resume},
		"the spool ends within a list": {nothing, func(f *lifecycle.Facts) {
			spooled("10")(f)
			f.Cut.Cause = "relist"
		}, "20", "", lifecycle.List},
		"the spool reaches beyond the begin": {nothing, spooled("25"), "20", "", lifecycle.Resume},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRecording(t)
			st := s.OpenStream(defined)
			fifo := s.Queue.FIFO(st.FIFOOptions())
			s.replace(fifo, "10")
			h := s.handler()
			test.record(s, h, fifo)
			s.Pump()
			asked := answering(t, h, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(noThings)) })
			f := st.Facts(nil)
			f.Begins, f.Vacant = test.since, test.since != "" && h.options.Launcher.Vacant(st)
			test.known(&f)
			d, err := h.resolve(t.Context(), defined, &f, st.Recorded().Position)
			require.NoError(t, err)
			require.Equal(t, test.asked, strings.Join(asked(), " "))
			require.Equal(t, test.then, d.Do)
		})
	}
}

func (s recording) addAndDelete(_ *Handler, fifo *deltafifo.FIFO) {
	require.NoError(s.T, fifo.Add(streamtest.Served(s.T, "Thing", "a", 11)))
	require.NoError(s.T, fifo.Delete(streamtest.Served(s.T, "Thing", "a", 12)))
}

func (s recording) replace(fifo *deltafifo.FIFO, version string) {
	s.T.Helper()
	require.NoError(s.T, fifo.Replace(nil, version))
	s.Pump()
}

// defineOnce records an earlier definition, which ended at the stream's position.
func (s recording) defineOnce(h *Handler, fifo *deltafifo.FIFO) {
	s.T.Helper()
	definitions := s.feed(kube.Resource{Group: "apiextensions.k8s.io", Version: "v1", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"})
	s.replace(definitions, "5")
	for i, do := range []func(any) error{definitions.Add, definitions.Delete} {
		o := streamtest.Served(s.T, "CustomResourceDefinition", "things.example.com", []int{6, 12}[i])
		o.Namespace, o.UID = "", "u1"
		require.NoError(s.T, do(o))
	}
	require.NoError(s.T, definitions.Bookmark("30"))
	s.Pump()
	s.At = s.At.Add(time.Second)
	s.replace(fifo, "12")
	h.options.Definitions = "5"
}
