package kube

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// event returns one frame of a watch.
func event(kind, name, version string) string {
	return fmt.Sprintf(`{"type":%q,"object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":%q,"resourceVersion":%q}}}`, kind, name, version)
}

func TestAWatchDeliversEachEventWithItsBytesAndEndsWithoutError(t *testing.T) {
	client := serve(t, stream(false,
		// Frames are JSON values. Line breaks, packets and the order of members do not mark the end of a frame.
		event("ADDED", "a", "2")+event("MODIFIED", "a", "3")+"\n\n", event("DELETED", "a", "4")[:20], event("DELETED", "a", "4")[20:],
		"{\n\"object\":{\"metadata\":{\"name\":\"b\"},\n\n \"x\":\"}{\"},\"other\":[{}],\"type\":\"ADDED\"}",
		event("BOOKMARK", "", "9")))
	w := open(t, client.ListWatch(pods, ""))
	events := collect(w)
	require.NoError(t, w.Err())
	var kinds []watch.EventType
	for _, e := range events {
		kinds = append(kinds, e.Type)
	}
	require.Equal(t, []watch.EventType{watch.Added, watch.Modified, watch.Deleted, watch.Added, watch.Bookmark}, kinds)
	require.Equal(t, `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"2"}}`, string(events[0].Object.(*Object).JSON))
	require.Equal(t, "4", events[2].Object.(*Object).ResourceVersion)
	require.Equal(t, "{\"metadata\":{\"name\":\"b\"},\n\n \"x\":\"}{\"}", string(events[3].Object.(*Object).JSON))
	require.Equal(t, &Object{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}, ObjectMeta: metav1.ObjectMeta{ResourceVersion: "9"}}, events[4].Object)
}

func TestAnErrorEventCarriesItsStatusAndIsTheLast(t *testing.T) {
	client := serve(t, stream(true, `{"type":"ERROR","object":`+failure(410, metav1.StatusReasonExpired, "too old")+`}`))
	w := open(t, client.ListWatch(pods, ""))
	events := collect(w)
	require.Len(t, events, 1)
	require.Equal(t, watch.Error, events[0].Type)
	require.True(t, apierrors.IsResourceExpired(apierrors.FromObject(events[0].Object)))
	require.NoError(t, w.Err())
}

func TestAStreamCutWithinAnObjectEndsWithoutAnErrorEvent(t *testing.T) {
	// A new connection repairs it. client-go, too, treats it as an end.
	text := event("ADDED", "a", "2") + event("ADDED", "b", "3")
	for cut := len(text) - 1; cut > len(event("ADDED", "a", "2")); cut -= 7 {
		client := serve(t, stream(false, text[:cut]))
		w := open(t, client.ListWatch(pods, ""))
		require.Len(t, collect(w), 1)
		require.ErrorIs(t, w.Err(), io.ErrUnexpectedEOF)
		require.ErrorContains(t, w.Err(), "watch of v1 pods")
	}
}

func TestAConnectionThatBreaksEndsTheWatchWithItsError(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		stream(false, event("ADDED", "a", "2"))(w, nil)
		panic(http.ErrAbortHandler)
	})
	w := open(t, client.ListWatch(pods, ""))
	require.Len(t, collect(w), 1)
	require.ErrorIs(t, w.Err(), io.ErrUnexpectedEOF)
}

func TestAFaultThatANewConnectionDoesNotRepairIsAnErrorEvent(t *testing.T) {
	tests := map[string]struct{ text, want string }{
		"garbage":               {`}{ garbage`, "the stream is not JSON watch events: "},
		"garbage in an event":   {`{"type":"ADDED","object":{"metadata":{"name":"x",}}}`, "the stream is not JSON watch events: "},
		"an array":              {`[1]`, "expected a JSON object, found ["},
		"an unknown type":       {`{"type":"CHANGED","object":{}}`, `an event of type "CHANGED"`},
		"a bare status":         {failure(500, metav1.StatusReasonInternalError, "oops"), `an event of type ""`},
		"an event of nothing":   {`{"type":"ADDED"}`, "event of v1 pods cannot be decoded: the event has no object"},
		"an event of null":      {`{"type":"ADDED","object":null}`, "expected a JSON object, found null"},
		"metadata of no sense":  {`{"type":"ADDED","object":{"metadata":{"namespace":"ns","name":"odd","labels":[]}}}`, "event of v1 pods (ns/odd) cannot be decoded"},
		"an error of nothing":   {`{"type":"ERROR"}`, "an ERROR event without a Status"},
		"an error that is none": {`{"type":"ERROR","object":{"kind":"Pod"}}`, "an ERROR event without a Status"},
		"type of no sense":      {`{"type":[],"object":{}}`, "the stream is not JSON watch events: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := serve(t, stream(true, event("ADDED", "a", "2")+test.text))
			w := open(t, client.ListWatch(pods, ""))
			events := collect(w)
			require.Len(t, events, 2)
			require.Equal(t, watch.Error, events[1].Type)
			err := apierrors.FromObject(events[1].Object)
			require.ErrorContains(t, err, test.want)
			require.True(t, apierrors.HasStatusCause(err, CauseUndecodable))
			require.ErrorContains(t, w.Err(), test.want)
		})
	}
}

func TestTheErrorForATooLargeFrameNamesTheObject(t *testing.T) {
	const limit = 128 << 10
	big := func(name string, size int) string {
		return `{"type":"ADDED","object":{"metadata":{"namespace":"ns","name":"` + name + `"},"data":"` + strings.Repeat("x", size) + `"}}`
	}
	client := serve(t, stream(true, strings.Repeat(big("fits", limit/2), 10), big("huge", 2*limit)))
	client.options.MaxFrameBytes = limit
	w := open(t, client.ListWatch(pods, ""))
	events := collect(w)
	require.Len(t, events, 11)
	require.ErrorContains(t, apierrors.FromObject(events[10].Object), "one object (ns/huge) is larger than 131072 bytes")
	require.ErrorAs(t, w.Err(), new(*FrameTooLargeError))
}

func TestAnObjectDoesNotChangeWhenLaterOnesAreRead(t *testing.T) {
	var text strings.Builder
	for i := range 500 {
		text.WriteString(event("ADDED", fmt.Sprintf("name-%d", i), "2"))
	}
	client := serve(t, stream(false, text.String()))
	for i, e := range collect(open(t, client.ListWatch(pods, ""))) {
		o, name := e.Object.(*Object), fmt.Sprintf("name-%d", i)
		require.Equal(t, name, o.Name)
		require.Contains(t, string(o.JSON), `"`+name+`"`)
		require.Less(t, cap(o.JSON), 2*len(o.JSON), "the text is part of a larger buffer")
	}
}

func TestStopEndsAWatchInEachState(t *testing.T) {
	for name, parts := range map[string][]string{"waiting": nil, "sending": {event("ADDED", "a", "2") + event("ADDED", "a", "3")}, "within an object": {`{"type`}} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			client := serve(t, func(w http.ResponseWriter, r *http.Request) {
				defer close(gone)
				stream(true, parts...)(w, r)
			})
			w := open(t, client.ListWatch(pods, ""))
			w.Stop()
			w.Stop()
			<-gone
			collect(w)
			require.NoError(t, w.Err())
		})
	}
}

func TestAWatchEndsWithItsContextAndSaysWhy(t *testing.T) {
	client := serve(t, stream(true, event("ADDED", "a", "2")))
	ctx, cancel := context.WithCancelCause(t.Context())
	w, err := client.ListWatch(pods, "").WatchWithContext(ctx, metav1.ListOptions{})
	require.NoError(t, err)
	<-w.ResultChan()
	reason := errors.New("shutting down")
	cancel(reason)
	require.Empty(t, collect(w))
	require.ErrorIs(t, w.(*Watch).Err(), reason)
}

func TestAWatchRequestsNoCompressionButReadsIt(t *testing.T) {
	sent := make(chan struct{})
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if encoding := r.Header.Get("Accept-Encoding"); encoding != "identity" {
			http.Error(w, encoding, http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Encoding", "gzip")
		// Each event is a gzip member of its own, and arrives before the server sends the next one.
		for _, version := range []string{"2", "3", "4"} {
			packer := gzip.NewWriter(w)
			fmt.Fprint(packer, event("MODIFIED", "a", version))
			_ = packer.Close()
			w.(http.Flusher).Flush()
			<-sent
		}
	})
	w := open(t, client.ListWatch(pods, ""))
	for _, version := range []string{"2", "3", "4"} {
		select {
		case e := <-w.ResultChan():
			require.Equal(t, version, e.Object.(*Object).ResourceVersion)
		case <-time.After(deadline):
			t.Fatal("an event was withheld")
		}
		sent <- struct{}{}
	}
	require.Empty(t, collect(w))
	require.NoError(t, w.Err())
}

func TestAFreshWatchClosesItsOwnConnectionAtItsEnd(t *testing.T) {
	addresses, gone := make(chan string, 3), make(chan struct{}, 3)
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		addresses <- r.RemoteAddr
		defer func() { gone <- struct{}{} }()
		if strings.HasPrefix(r.URL.Path, "/api/v1/namespaces/ns/pods") {
			stream(true)(w, r)
			return
		}
		answer(200, "application/json", `{"items":[]}`)(w, r)
	})
	lw := client.ListWatch(pods, "ns")
	_, err := client.ListWatch(pods, "").List(metav1.ListOptions{})
	require.NoError(t, err)
	usual := <-addresses
	<-gone
	w, err := lw.WatchFresh(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	require.NoError(t, err)
	require.NotEqual(t, usual, <-addresses)
	w.Stop()
	<-gone
	_, err = client.ListWatch(pods, "").List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, usual, <-addresses)
}

func TestARefusedFreshWatchClosesItsConnection(t *testing.T) {
	client := serve(t, answer(410, "application/json", failure(410, metav1.StatusReasonExpired, "too old")))
	_, err := client.ListWatch(pods, "").WatchFresh(t.Context(), metav1.ListOptions{ResourceVersion: "1"})
	require.True(t, apierrors.IsResourceExpired(err), err)
}

func TestAFreshClientKeepsTheConfiguration(t *testing.T) {
	seen := make(chan *http.Request, 1)
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen <- r
		answer(200, "application/json", `{"items":[]}`)(w, r)
	})
	config := rest.CopyConfig(client.config)
	config.BearerToken = "token"
	client = connect(t, config, Options{UserAgent: "someone/1"})
	fresh, err := client.Fresh()
	require.NoError(t, err)
	defer fresh.Close()
	_, err = fresh.ListWatch(pods, "").List(metav1.ListOptions{})
	require.NoError(t, err)
	r := <-seen
	require.Equal(t, "Bearer token", r.Header.Get("Authorization"))
	require.Equal(t, "someone/1", r.Header.Get("User-Agent"))
	require.Same(t, client.rest.GetRateLimiter(), fresh.rest.GetRateLimiter())
}
