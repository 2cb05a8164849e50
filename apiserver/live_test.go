package apiserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
)

// serveLive serves a pen's record at its end.
func serveLive(t *testing.T, p *pen) *past {
	t.Helper()
	return serveRecord(t, p.record(), httptest.NewServer)
}

func serveRecord(t *testing.T, record *history.Record, listen func(http.Handler) *httptest.Server) *past {
	t.Helper()
	handler, err := apiserver.New(apiserver.Options{Records: []*history.Record{record}})
	require.NoError(t, err)
	t.Cleanup(handler.Close)
	server := listen(handler)
	t.Cleanup(server.Close)
	return &past{T: t, record: record, handler: handler, server: server, root: apiserver.LivePath(record.Cluster().UID)}
}

// events is one open watch.
type events struct {
	*testing.T
	cancel context.CancelFunc
	body   *bufio.Scanner
	code   int
}

func (p *past) watch(path string) *events {
	p.Helper()
	ctx, cancel := context.WithCancel(p.Context())
	p.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.server.URL+p.root+path, nil)
	require.NoError(p, err)
	response, err := p.server.Client().Do(r)
	require.NoError(p, err)
	p.Cleanup(func() { _ = response.Body.Close() })
	return &events{T: p.T, cancel: cancel, body: bufio.NewScanner(response.Body), code: response.StatusCode}
}

// next returns the next event that is no bookmark.
func (e *events) next() (event event) {
	e.Helper()
	for e.body.Scan() {
		event.Object.Metadata.Annotations = nil
		require.NoError(e, json.Unmarshal(e.body.Bytes(), &event))
		if event.Type != "BOOKMARK" {
			return event
		}
	}
	require.FailNow(e, "the watch has ended", "%v", e.body.Err())
	return event
}

func (p *past) version(path string) string {
	p.Helper()
	code, _, body := p.ask(http.MethodGet, path)
	require.Equal(p, http.StatusOK, code, body)
	var l struct {
		Metadata struct{ ResourceVersion string }
	}
	require.NoError(p, json.Unmarshal([]byte(body), &l))
	return l.Metadata.ResourceVersion
}

func TestAWatchOfTheEndOfTheRecordContinues(t *testing.T) {
	pen := newPen(t)
	live := serveLive(t, pen)
	pen.commit(pen.set(0, "a", "one", "l1"))
	rv := live.version("/api/v1/configmaps")
	require.Equal(t, strconv.Itoa(pen.RV), rv)
	watch := live.watch("/api/v1/configmaps?watch=1&resourceVersion=" + rv)
	require.Equal(t, http.StatusOK, watch.code)
	for range 3 {
		pen.commit(pen.set(1, "a", "other", "l1"), pen.set(0, "a", "one", "r2"))
		e := watch.next()
		require.Equal(t, "MODIFIED", e.Type)
		require.Equal(t, strconv.Itoa(pen.RV), e.Object.Metadata.ResourceVersion)
	}
	code, header, _ := live.ask(http.MethodGet, "/api/v1/configmaps")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "7", header.Get(apiserver.SeqHeader))
	require.Empty(t, header.Values("Warning"))
}

func TestOpenWatchesEndAtTheEndOfAGapThatAListClosed(t *testing.T) {
	pen := newPen(t)
	live := serveLive(t, pen)
	pen.commit(pen.set(0, "a", "one", "l1"))
	rv := live.version("/api/v1/configmaps")
	watch, other := live.watch("/api/v1/configmaps?watch=1&resourceVersion="+rv), live.watch("/api/v1/pods?watch=1&resourceVersion="+live.version("/api/v1/pods"))
	pen.interrupt(0)
	pen.list(0, "expired", pen.listed(0, "a", "two", "l2"))
	e := watch.next()
	require.Equal(t, "ERROR", e.Type)
	require.EqualValues(t, http.StatusGone, live.status(http.MethodGet, "/api/v1/configmaps?watch=1&resourceVersion="+rv).Code)

	// A list that showed nothing new ends them, too.
	watch = live.watch("/api/v1/configmaps?watch=1&resourceVersion=" + live.version("/api/v1/configmaps"))
	pen.interrupt(0)
	pen.RV++
	pen.list(0, "expired")
	require.Equal(t, "ERROR", watch.next().Type)

	pen.commit(pen.set(1, "a", "other", "l1"))
	require.Equal(t, "other", other.next().Object.Metadata.Name, "another stream has no gap")
}
