package web_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/past"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// A whole is a server as the programs have it: the page, and beside it the API of the past.
type whole struct {
	t      *testing.T
	record *history.Record
	server *past.Server
	stop   func()
}

// serveWhole serves a record until the test ends.
func serveWhole(t *testing.T, record *history.Record) *whole {
	t.Helper()
	w := &whole{t: t, record: record}
	require.NoError(t, w.start(past.AnyPort))
	t.Cleanup(func() { w.stop() })
	return w
}

func (w *whole) start(address string) (err error) {
	w.server, err = past.Listen([]*history.Record{w.record}, past.Options{
		Front: serve.Options{Address: past.AnyPort, Log: slog.New(slog.DiscardHandler)}, Page: &past.Page{Address: address},
	})
	if err != nil {
		return err
	}
	server := w.server
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	w.stop = func() {
		cancel()
		require.NoError(w.t, <-ended)
		server.Close()
	}
	return nil
}

// control gives an address. It answers with what clients need, as JSON, and with a new code. A POST first ends the server, and starts another one at the
// same address.
func (w *whole) control() string {
	control := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.stop()
			if err := w.start(strings.Trim(strings.TrimPrefix(w.server.Page(), "http:"), "/")); err != nil {
				http.Error(answer, err.Error(), http.StatusInternalServerError)
				return
			}
		}
		link, _ := w.server.Link()
		access := w.server.Access()
		_ = json.NewEncoder(answer).Encode(map[string]string{"code": link.Code, "url": access.URL, "token": access.Token, "ca": string(access.CA)}) // The test reads it.
	}))
	w.t.Cleanup(control.Close)
	return control.URL
}
