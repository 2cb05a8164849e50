package recorder

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

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/lifecycle"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/kube"
)

var defined = kube.Resource{Group: "example.com", Version: "v1", Name: "things", Kind: "Thing", Namespaced: true, DefinitionUID: "u2"}

// answering is a recorder whose API server gives one answer to everything, and notes the resource versions that it is asked for.
func answering(t *testing.T, r *Recorder, answer func(w http.ResponseWriter, request *http.Request)) (asked func() []string) {
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
	r.client = client
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(versions)
	}
}

const tooLarge = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Timeout","message":"no","details":{"causes":[{"reason":"ResourceVersionTooLarge"}]}}`

const noThings, oneThing = `{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[]}`,
	`{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a","namespace":"a","uid":"x","resourceVersion":"3"}}]}`

func TestTheServerIsAskedForOutlivingObjectsUntilThePatienceEnds(t *testing.T) {
	failed := func(reason string) string {
		return `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"` + reason + `","message":"no"}`
	}
	for name, test := range map[string]struct {
		status  int
		body    string
		left    bool
		patient time.Duration // for how long it is asked again; 0 if it is not
	}{
		"none":                            {http.StatusOK, noThings, false, 0},
		"one":                             {http.StatusOK, oneThing, true, 0},
		"one that cannot be read":         {http.StatusOK, `{"kind":"ThingList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":7}}]}`, true, 0},
		"forgotten":                       {http.StatusGone, failed("Expired"), true, 0},
		"of a history that is no more":    {http.StatusGatewayTimeout, tooLarge, true, 0},
		"refused":                         {http.StatusForbidden, failed("Forbidden"), true, refusedPatience},
		"not served yet":                  {http.StatusNotFound, failed("NotFound"), true, refusedPatience},
		"a conversion that does not work": {http.StatusInternalServerError, failed("InternalError"), true, refusedPatience},
		"an API server that is too busy":  {http.StatusServiceUnavailable, failed("ServiceUnavailable"), true, askedPatience},
		"no API server":                   {0, "", true, askedPatience},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandler(&Recorder{log: slog.New(slog.DiscardHandler)}, nil)
			asked := answering(t, h.Recorder, func(w http.ResponseWriter, _ *http.Request) {
				if test.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(test.status)
				_, _ = w.Write([]byte(test.body)) // who asks notices
			})
			left, err := h.outlived(t.Context(), defined, "7")
			require.Equal(t, []string{"7"}, slices.Compact(asked()))
			if test.patient > 0 {
				require.Error(t, err)
				other := defined
				other.DefinitionUID = "u3"
				pass := func(d time.Duration) {
					a := h.asking[defined.GroupResource()]
					a.refused.since, a.asked.since = a.refused.since.Add(-d), a.asked.since.Add(-d)
				}
				pass(test.patient)
				_, err = h.outlived(t.Context(), other, "7")
				require.Error(t, err, "that was another definition's patience")
				pass(test.patient - time.Second)
				_, err = h.outlived(t.Context(), other, "7")
				require.Error(t, err)
				pass(time.Second)
				left, err = h.outlived(t.Context(), other, "7")
			}
			require.NoError(t, err)
			require.Equal(t, test.left, left)
		})
	}
}

// It waits for a version to come, and has it asked for again.
func TestAFutureVersionIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	h := newHandler(&Recorder{log: slog.New(slog.DiscardHandler)}, nil)
	asked := answering(t, h.Recorder, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Query().Get("fieldSelector") == "" {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(http.StatusGatewayTimeout)
		_, _ = w.Write([]byte(tooLarge)) // who asks notices
	})
	left, err := h.outlived(t.Context(), defined, "7")
	require.NoError(t, err)
	require.True(t, left)
	require.Greater(t, len(asked()), 2)
}

func TestTheServerIsAskedOnceWhileTheDatabaseIsAway(t *testing.T) {
	s := newSwept(t)
	h := newHandler(s.recorder, nil)
	body := noThings
	asked := answering(t, s.recorder, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) })
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
	require.Empty(t, from, "it is not complete from there")
	_, _, err := s.recorder.streamOf(t.Context(), defined, "")
	require.NoError(t, err)
	is, _ := first()
	require.False(t, is)
	delete(s.recorder.streams, defined.GroupResource())
	is, _ = first()
	require.False(t, is, "a recorder before this one has followed it")
}

func TestARestartedAPIServerGetsTimeToServeAResource(t *testing.T) {
	var a asking
	notFound := apierrors.NewNotFound(defined.GroupResource(), "")
	require.False(t, a.over("u", notFound))
	a.refused.since = a.refused.since.Add(-refusedPatience)
	require.False(t, a.over("u", errors.New("connection refused")))
	require.False(t, a.over("u", notFound))
	a.asked.since = a.asked.since.Add(-askedPatience)
	require.True(t, a.over("u", errors.New("connection refused")), "it may not come to an end else")
}

func TestTheServerIsAskedBeforeAStreamBeginsWithoutAList(t *testing.T) {
	concluded := func(position string, add bool) func(*swept, *stream, *deltafifo.FIFO) {
		return func(s *swept, st *stream, fifo *deltafifo.FIFO) {
			if add {
				require.NoError(t, fifo.Add(served(t, "Thing", "a", 9)))
			}
			st.run = ended(s.queue, position)
		}
	}
	for name, test := range map[string]struct {
		before func(*swept, *stream, *deltafifo.FIFO)
		since  string
		asked  string // at this version
		then   lifecycle.Action
	}{
		"it ended before":                            {func(_ *swept, st *stream, _ *deltafifo.FIFO) { st.ended = "12" }, "20", "20", lifecycle.Begin},
		"it ended, and when it began is not known":   {func(_ *swept, st *stream, _ *deltafifo.FIFO) { st.ended = "12" }, "", "12", lifecycle.Resume},
		"it had not ended at that version":           {func(_ *swept, st *stream, _ *deltafifo.FIFO) { st.ended = "12" }, "11", "12", lifecycle.Resume},
		"its end is to be listed":                    {func(_ *swept, st *stream, _ *deltafifo.FIFO) { st.due = lifecycle.Reason{Cause: "not_found"} }, "20", "", lifecycle.List},
		"it was watched to its end":                  {concluded("15", false), "20", "20", lifecycle.Begin},
		"it was watched beyond":                      {concluded("25", false), "20", "", lifecycle.Resume},
		"it was watched to its end, something lives": {concluded("15", true), "20", "", lifecycle.Resume},
		"not to its end": {func(s *swept, st *stream, fifo *deltafifo.FIFO) {
			concluded("15", false)(s, st, fifo)
			st.run.followed = false
		}, "20", "", lifecycle.Resume},
		"it goes on in another version": {concluded("15", false), "", "", lifecycle.Resume},
		"its end was not followed":      {func(*swept, *stream, *deltafifo.FIFO) {}, "20", "20", lifecycle.Resume},
		"nor that of what lives": {func(s *swept, _ *stream, fifo *deltafifo.FIFO) {
			require.NoError(s.t, fifo.Add(served(s.t, "Thing", "a", 11)))
		}, "20", "", lifecycle.Resume},
		"what lived was deleted before it":   {(*swept).addAndDelete, "11", "12", lifecycle.Resume},
		"a recorder before has seen the end": {(*swept).defineOnce, "20", "20", lifecycle.Begin},
		"and a list since":                   {func(s *swept, st *stream, fifo *deltafifo.FIFO) { s.defineOnce(st, fifo); s.replace(fifo, "25") }, "20", "25", lifecycle.Resume},
		"a part lies in the spool": {func(_ *swept, st *stream, _ *deltafifo.FIFO) {
			st.left = &spooling.Leftover{Spooled: deltafifo.Spooled{Position: delta.At("15")}}
		}, "20", "20", lifecycle.Resume},
		"only that it is interrupted lies there": {func(_ *swept, st *stream, _ *deltafifo.FIFO) { st.left = &spooling.Leftover{} }, "20", "20", lifecycle.Resume},
		"and it is to be listed": {func(_ *swept, st *stream, _ *deltafifo.FIFO) {
			st.left = &spooling.Leftover{Listing: true, ListCause: "relist"}
		}, "20", "", lifecycle.List},
		"all lies in the spool": {func(_ *swept, st *stream, _ *deltafifo.FIFO) {
			st.left = &spooling.Leftover{Spooled: deltafifo.Spooled{Position: delta.At("25")}}
		}, "20", "", lifecycle.Resume},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSwept(t)
			st, _, err := s.recorder.streamOf(t.Context(), defined, "")
			require.NoError(t, err)
			fifo := s.queue.FIFO(deltafifo.FIFOOptions{Stream: st, KnownObjects: st.record.Known(), Rules: st.rules.String()})
			s.replace(fifo, "10")
			test.before(s, st, fifo)
			s.pump()
			h := newHandler(s.recorder, nil)
			asked := answering(t, s.recorder, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(noThings)) })
			d, err := h.decide(t.Context(), st, defined, test.since)
			require.NoError(t, err)
			require.Equal(t, test.asked, strings.Join(asked(), " "))
			require.Equal(t, test.then, d.Do)
		})
	}
}

func (s *swept) addAndDelete(_ *stream, fifo *deltafifo.FIFO) {
	require.NoError(s.t, fifo.Add(served(s.t, "Thing", "a", 11)))
	require.NoError(s.t, fifo.Delete(served(s.t, "Thing", "a", 12)))
}

func (s *swept) replace(fifo *deltafifo.FIFO, version string) {
	s.t.Helper()
	require.NoError(s.t, fifo.Replace(nil, version))
	s.pump()
}

// defineOnce puts a definition before on record, which ended where the stream had come to.
func (s *swept) defineOnce(_ *stream, fifo *deltafifo.FIFO) {
	s.t.Helper()
	st, _, err := s.recorder.streamOf(s.t.Context(), kube.Resource{Group: "apiextensions.k8s.io", Version: "v1", Name: "customresourcedefinitions", Kind: "CustomResourceDefinition"}, "")
	require.NoError(s.t, err)
	definitions := s.queue.FIFO(deltafifo.FIFOOptions{Stream: st, KnownObjects: st.record.Known(), Rules: st.rules.String()})
	s.replace(definitions, "5")
	for i, do := range []func(any) error{definitions.Add, definitions.Delete} {
		o := served(s.t, "CustomResourceDefinition", "things.example.com", []int{6, 12}[i])
		o.Namespace, o.UID = "", "u1"
		require.NoError(s.t, do(o))
	}
	require.NoError(s.t, definitions.Bookmark("30"))
	s.pump()
	s.at = s.at.Add(time.Second)
	s.replace(fifo, "12")
	s.recorder.definitions = "5"
}
