package kube

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

func TestAnInvalidAnswerGivesAnErrorThatNamesTheFault(t *testing.T) {
	tests := map[string]struct {
		handler http.HandlerFunc
		want    []string
		is      func(error) bool
	}{
		"a login page": {answer(200, "text/html; charset=utf-8", "<!DOCTYPE html><title>Log in</title>"),
			[]string{"/api/v1/pods", "text/html", "<!DOCTYPE html><title>Log in", "127.0.0.1:"}, nil},
		"plain text":             {answer(200, "text/plain", "default backend - 404"), []string{`"text/plain"`, "default backend"}, nil},
		"protobuf":               {answer(200, "application/vnd.kubernetes.protobuf", "k8s\x00"), []string{"protobuf"}, nil},
		"HTML called JSON":       {answer(200, "application/json", "<html>"), []string{"invalid character '<'"}, nil},
		"401":                    {answer(401, "application/json", failure(401, metav1.StatusReasonUnauthorized, "who?")), []string{"who?"}, apierrors.IsUnauthorized},
		"403":                    {answer(403, "application/json", failure(403, metav1.StatusReasonForbidden, "pods is forbidden")), []string{"v1 pods", "pods is forbidden"}, apierrors.IsForbidden},
		"404":                    {answer(404, "text/plain", "404 page not found"), []string{"could not find"}, apierrors.IsNotFound},
		"410":                    {answer(410, "application/json", failure(410, metav1.StatusReasonExpired, "too old")), []string{"too old"}, apierrors.IsResourceExpired},
		"500":                    {answer(500, "application/json", failure(500, metav1.StatusReasonInternalError, "etcd is sad")), []string{"etcd is sad"}, apierrors.IsInternalError},
		"502 of a proxy in HTML": {answer(502, "text/html", "<html>bad gateway</html>"), []string{"bad gateway"}, apierrors.IsInternalError},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			lw := serve(t, test.handler).ListWatch(pods, "")
			_, listed := lw.List(metav1.ListOptions{})
			w, watched := lw.Watch(metav1.ListOptions{})
			if watched == nil {
				require.Equal(t, "HTML called JSON", name)
				watched = apierrors.FromObject((<-w.ResultChan()).Object)
				w.Stop()
			}
			for _, err := range []error{listed, watched} {
				require.Error(t, err)
				for _, want := range test.want {
					require.ErrorContains(t, err, want)
				}
				require.True(t, test.is == nil || test.is(err), err)
			}
		})
	}
}

func TestRetryAfterIsObeyed(t *testing.T) {
	var requests atomic.Int32
	lw := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1)%2 == 1 {
			w.Header().Set("Retry-After", "1")
			answer(429, "application/json", failure(429, metav1.StatusReasonTooManyRequests, "slow down"))(w, r)
			return
		}
		if r.URL.Query().Get("watch") != "" {
			stream(false, event("ADDED", "a", "2"))(w, r)
			return
		}
		answer(200, "application/json", `{"items":[{}]}`)(w, r)
	}).ListWatch(pods, "")
	list, err := lw.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, list.(*List).Items, 1)
	w, err := lw.Watch(metav1.ListOptions{})
	require.NoError(t, err)
	require.Len(t, collect(w), 1)
	require.Equal(t, int32(4), requests.Load())
}

func TestTheEndOfTheContextEndsTheWaitForRetryAfter(t *testing.T) {
	asked := make(chan struct{}, 9)
	lw := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		w.Header().Set("Retry-After", "3600")
		answer(429, "application/json", failure(429, metav1.StatusReasonTooManyRequests, "slow down"))(w, r)
	}).ListWatch(pods, "")
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := lw.ListWithContext(ctx, metav1.ListOptions{})
	require.ErrorIs(t, err, context.Canceled)
}

func TestAServerWithAnotherCertificateIsNotTrusted(t *testing.T) {
	server := httptest.NewUnstartedServer(answer(200, "application/json", `{"items":[]}`))
	server.Config.ErrorLog = discardLog
	server.StartTLS()
	t.Cleanup(server.Close)
	client := connect(t, &rest.Config{Host: server.URL}, Options{})
	_, err := client.ListWatch(pods, "").List(metav1.ListOptions{})
	require.ErrorContains(t, err, "certificate signed by unknown authority")

	client = connect(t, &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: certificate(server)}}, Options{})
	_, err = client.ListWatch(pods, "").List(metav1.ListOptions{})
	require.NoError(t, err)

	_, err = NewClient(&rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: []byte("nonsense")}}, Options{})
	require.ErrorContains(t, err, "connection to https://127.0.0.1")

	client = connect(t, &rest.Config{Host: strings.Replace(server.URL, "https", "http", 1)}, Options{})
	_, err = client.ListWatch(pods, "").List(metav1.ListOptions{})
	require.ErrorContains(t, err, "HTTP request to an HTTPS server")
}

func TestTheErrorNamesAServerThatRefusesConnections(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	client := connect(t, &rest.Config{Host: "http://" + listener.Addr().String()}, Options{})
	_, err = client.ListWatch(pods, "").List(metav1.ListOptions{})
	require.ErrorContains(t, err, listener.Addr().String())
	require.ErrorContains(t, err, "connection refused")
}

func TestRequestsAcceptOnlyJSONAndHaveAUserAgent(t *testing.T) {
	requests := make(chan *http.Request, 1)
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r
		answer(200, "application/json", `{"items":[]}`)(w, r)
	})
	_, err := client.ListWatch(widgets, "ns").List(metav1.ListOptions{Limit: 500, Continue: "c"})
	require.NoError(t, err)
	r := <-requests
	require.Equal(t, "/apis/example.com/v1/namespaces/ns/widgets?continue=c&limit=500", r.URL.String())
	require.Contains(t, r.Header.Get("Accept"), "application/json")
	require.NotContains(t, r.Header.Get("Accept"), "cbor")
	require.True(t, strings.HasPrefix(r.Header.Get("User-Agent"), "kuberewind/"), r.Header)

	w, err := client.ListWatch(pods, "").Watch(metav1.ListOptions{ResourceVersion: "5", AllowWatchBookmarks: true})
	require.NoError(t, err)
	w.Stop()
	r = <-requests
	require.Equal(t, "/api/v1/pods?allowWatchBookmarks=true&resourceVersion=5&watch=true", r.URL.String())
	require.True(t, client.ListWatch(pods, "").IsWatchListSemanticsUnSupported())
	require.Equal(t, pods, client.ListWatch(pods, "").Resource())
}

func TestRequestsKeepThePathOfTheServersAddress(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		answer(200, "application/json", fmt.Sprintf(`{"items":[{"metadata":{"name":%q}}]}`, r.URL.Path))(w, r)
	})
	config := rest.CopyConfig(client.config)
	config.Host += "/k8s/clusters/c-1"
	list, err := connect(t, config, Options{}).ListWatch(pods, "").List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "/k8s/clusters/c-1/api/v1/pods", list.(*List).Items[0].Name)
}

func TestACompressedListOfSeveralMembersIsRead(t *testing.T) {
	var packed bytes.Buffer
	for _, part := range []string{`{"items":[{"metadata":`, `{"name":"a"}}`, `]}`} {
		packer := gzip.NewWriter(&packed)
		_, err := io.WriteString(packer, part)
		require.NoError(t, err)
		require.NoError(t, packer.Close())
	}
	lw := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "gzip" {
			http.Error(w, "lists may be compressed", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(packed.Bytes())
	}).ListWatch(pods, "")
	list, err := lw.List(metav1.ListOptions{})
	require.NoError(t, err)
	require.Equal(t, "a", list.(*List).Items[0].Name)
}

func TestAListCutWithinAnItemIsAnError(t *testing.T) {
	lw := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"items":[{"metadata":{"name":"a"}},{"meta`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}).ListWatch(pods, "")
	_, err := lw.List(metav1.ListOptions{})
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
}

func TestAnObjectIsReadByName(t *testing.T) {
	lw := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.String() {
		case "/api/v1/namespaces/ns/pods/a":
			answer(200, "application/json", `{"kind":"Pod","metadata":{"name":"a","resourceVersion":"5"}}`)(w, r)
		case "/api/v1/namespaces/ns/pods/odd":
			answer(200, "application/json", `[]`)(w, r)
		default:
			answer(404, "application/json", failure(404, metav1.StatusReasonNotFound, "no such pod"))(w, r)
		}
	}).ListWatch(pods, "")
	o, err := lw.Get(t.Context(), "ns", "a")
	require.NoError(t, err)
	require.Equal(t, "5", o.ResourceVersion)
	require.Equal(t, `{"kind":"Pod","metadata":{"name":"a","resourceVersion":"5"}}`, string(o.JSON))
	_, err = lw.Get(t.Context(), "ns", "b")
	require.True(t, apierrors.IsNotFound(err), err)
	require.ErrorContains(t, err, "v1 pods (ns/b)")
	_, err = lw.Get(t.Context(), "ns", "odd")
	require.ErrorContains(t, err, "expected a JSON object")
}

func TestTheClusterUIDIsTheUIDOfKubeSystem(t *testing.T) {
	tests := map[string]struct {
		handler http.HandlerFunc
		want    string
	}{
		"there":     {answer(200, "application/json", `{"metadata":{"name":"kube-system","uid":"the-uid"}}`), ""},
		"forbidden": {answer(403, "application/json", failure(403, metav1.StatusReasonForbidden, "no")), `{apiGroups: [""], resources: ["namespaces"], verbs: ["get"]}`},
		"not there": {answer(404, "application/json", failure(404, metav1.StatusReasonNotFound, "no")), "has no namespace kube-system"},
		"no UID":    {answer(200, "application/json", `{"metadata":{"name":"kube-system"}}`), "has no UID"},
		"HTML":      {answer(200, "text/html", `<html>`), "text/html"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			uid, err := serve(t, test.handler).ClusterUID(t.Context())
			if test.want == "" {
				require.NoError(t, err)
				require.Equal(t, "the-uid", string(uid))
				return
			}
			require.ErrorContains(t, err, "the cluster cannot be identified")
			require.ErrorContains(t, err, test.want)
		})
	}
}
