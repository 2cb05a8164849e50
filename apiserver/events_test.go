package apiserver

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/watch"
)

func TestAWatchOfAClientThatDoesNotReadEndsOnlyAfterCatchingUp(t *testing.T) {
	for name, c := range map[string]struct {
		patience time.Duration
		ends     bool
	}{"caught up": {takesWithin, true}, "behind": {0, false}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun, ended := time.Now(), make(chan time.Duration, 1)
				object := []byte(`"` + string(bytes.Repeat([]byte("x"), 1000)) + `"`)
				server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					err := serveEvents(w, r, func(_ context.Context, stream eventStream) {
						stream.patience(c.patience)
						for stream.send(watch.Added, object) == nil && stream.flush() == nil {
						}
					})
					if err == nil {
						ended <- time.Since(begun)
					}
				})}
				listener := NewPipe()
				served := make(chan error, 1)
				go func() { served <- server.Serve(listener) }()
				client, err := listener.Dial(t.Context(), "", "")
				require.NoError(t, err)
				_, err = client.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
				require.NoError(t, err)
				_, err = client.Read(make([]byte, 4096)) // the headers, and then nothing more
				require.NoError(t, err)
				select {
				case after := <-ended:
					require.True(t, c.ends)
					require.Equal(t, takesWithin, after)
				case <-time.After(time.Hour):
					require.False(t, c.ends)
				}
				require.NoError(t, client.Close())
				if !c.ends {
					<-ended
				}
				require.NoError(t, server.Close())
				require.ErrorIs(t, <-served, http.ErrServerClosed)
			})
		})
	}
}

func TestAnIdleStreamHasNoDeadline(t *testing.T) {
	var last time.Time
	times := 0
	w := &patientWriter{ResponseWriter: httptest.NewRecorder(), within: takesWithin, deadline: func(at time.Time) error {
		last = at
		times++
		return nil
	}}
	_, err := w.Write(make([]byte, 2*pieceBytes))
	require.NoError(t, err)
	require.Zero(t, last, "over HTTP/2 it would end the watch")
	require.Equal(t, 4, times, "each piece has the whole time")
}
