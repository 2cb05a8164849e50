package timeline_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/timeline"
)

func TestAnInvalidRequestIsRefusedWithAReason(t *testing.T) {
	s := newScene(t, time.Minute)
	at := strconv.FormatInt(s.extent.LastAt.UnixMilli(), 10)
	later := strconv.FormatInt(s.extent.LastAt.UnixMilli()+1000, 10)
	for _, test := range []struct {
		shape, query string
		code         int
		says         string
	}{
		{"strip", "from=" + later + "&to=" + at, 400, "is not before"},
		{"strip", "from=" + at + "&to=" + at, 400, "is not before"},
		{"strip", "from=" + at, 400, "to is missing"},
		{"strip", "from=yesterday&to=" + at, 400, "milliseconds since 1970"},
		{"strip", "from=0&to=99999999999999999", 400, "up to the year 2261"},
		{"strip", "from=0&to=" + at + "&bars=1000000", 400, "from 1 to 4000"},
		{"strip", "from=0&to=" + at + "&bras=60", 400, `"bras" is not a parameter`},
		{"strip", "from=0&from=1&to=" + at, 400, "appears 2 times"},
		{"strip", "from=0&to=" + at + "&cursor=1-2-3", 400, "ask without it"},
		{"strip", "from=0&to=" + at + "&cursor=0-1000000000000000-1-1-1-1", 400, "ask without it"},
		{"strip", "from=0&to=1&cursor=-9000000000000000000-9000000000000000000-1-1-0-0", 400, "ask without it"},
		{"strip", "from=0&to=1&cursor=0-9000000000000000000-9000000000000000-1-0-0", 400, "ask without it"},
		{"strip", "from=0&to=1&cursor=0-15-10-1-1-1", 400, "ask without it"},
		{"strip", "from=0&to=1&cursor=0-10-10-1-9000000000000000000-9000000000000000000", 400, "ask without it"},
		{"strip", "from=0&to=" + at + "&resource=deployments", 400, "no such resource"},
		{"strip", "from=0&to=" + at + "&label=a%20b%20c", 400, "no label selector"},
		{"strip", "from=0&to=" + at + "&path=spec.replicas", 400, "no JSON pointer"},
		{"strip", "from=0&to=" + at + "&type=Modified", 400, "Added, Updated, Deleted, Sync"},
		{"strip", "from=0&to=" + at + "&class=noise", 400, "heartbeat"},
		{"strip", "from=0&to=" + at + "&name=" + strings.Repeat("x", 1<<20), 413, "make the filter shorter"},
		{"lanes", "from=0&to=" + at + "&sort=colour", 400, "changes, trouble, name"},
		{"lanes", "from=0&to=" + at + "&cursor=-1", 400, "ask without it"},
		{"lanes", "from=0&to=" + at + "&cursor=7", 400, "ask without it"},
		{"lanes", "from=0&to=" + at + "&cursor=9000000000000000000-1-1", 400, "ask without it"},
		{"lanes", "from=0&to=" + at + "&cursor=0--9000000000000000000-1", 400, "ask without it"},
		{"ticks", "from=0&to=" + at + "&lanes=1&cursor=0-1-9000000000000000000", 400, "ask without it"},
		{"ticks", "from=0&to=" + at + "&lanes=1&cursor=0-9-1", 400, "ask without it"},
		{"strip", "from=0&to=" + at + "&namespace=", 400, "namespace is empty"},
		{"changes", "from=0&to=" + at + "&cursor=-1-5", 400, "ask without it"},
		{"changes", "from=0&to=" + at + "&cursor=1-9000000000000000000", 400, "ask without it"},
		{"compare", "a=seq:1&cursor=-1", 400, "number from 0"},
		{"related", "uid=none", 404, "never held"},
		{"related", "uid=none&at=soon", 400, "at=soon"},
		{"related", "", 400, "name the object"},
		{"nearby", "uid=none&back=0", 400, "from 1 to 86400000"},
		{"nearby", "uid=none", 404, "never held"},
		{"nearby", "", 400, "name the object"},
		{"lanes", "from=0&to=" + at + "&limit=0", 400, "from 1 to 500"},
		{"ticks", "from=0&to=" + at, 400, "lanes is missing"},
		{"ticks", "from=0&to=" + at + "&lanes=1,web", 400, "no number from 1"},
		{"ticks", "from=0&to=" + at + "&lanes=1" + strings.Repeat(",1", 600), 400, "at most 500"},
		{"tail", "head=7", 400, "head: not a head of the chain"},
		{"instant", "at=tomorrow", 400, "is no instant"},
		{"instant", "at=tomorrow&zone=UTC", 400, "tomorrow"},
		{"instant", "at=6:45 pm&zone=UTC", 400, "use a time (18:45"},
		{"instant", "at=10m&zone=Mars/Olympus", 400, "is unknown to this server: use UTC"},
		{"instant", "at=10m&zone=../../etc/passwd", 400, "is unknown to this server: use UTC"},
		{"instant", "at=1970-01-02T00:00:00Z", 410, "before the record began"},
		{"tail", "after=-1", 400, "number from 0"},
		{"meta", "cluster=nowhere", 404, "is not served"},
		{"weather", "", 404, "the timeline has no"},
	} {
		values, err := url.ParseQuery(test.query)
		require.NoError(t, err)
		status := s.refused(t, test.shape, values)
		require.Equal(t, test.code, int(status.Code), "%s?%.80s: %s", test.shape, test.query, status.Message)
		require.Contains(t, status.Message, test.says, "%s?%.80s", test.shape, test.query)
		require.Less(t, len(status.Message), 500)
	}
}

func TestOnlyGetIsServed(t *testing.T) {
	s := newScene(t, time.Minute)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodPost, timeline.Root+"meta", nil))
	require.Equal(t, http.StatusMethodNotAllowed, w.Code)
}

func TestShortAndLongWindowsAreAnswered(t *testing.T) {
	s := newScene(t, time.Minute)
	at := s.extent.FirstAt.UnixMilli()
	var second, century bars
	s.ask(t, "strip", url.Values{"from": {strconv.FormatInt(at, 10)}, "to": {strconv.FormatInt(at+1000, 10)}}, &second)
	require.Equal(t, int64(1000), second.StepMS)
	require.LessOrEqual(t, len(second.FirstSeq), 2)
	s.ask(t, "strip", url.Values{"from": {"0"}, "to": {strconv.FormatInt(int64(100*365*24)*3600*1000, 10)}}, &century)
	require.GreaterOrEqual(t, len(century.FirstSeq), 60, "the window ends with the record")
	kinds := map[string]bool{}
	for _, l := range century.Incomplete {
		kinds[l.Kind] = true
	}
	require.True(t, kinds["before"], "the time before the record is marked")
	var before bars
	s.ask(t, "strip", url.Values{"from": {"0"}, "to": {"1000000"}}, &before)
	require.Empty(t, before.counted())
}

func TestRequestsFailOnlyWhileTheDatabaseIsUnavailable(t *testing.T) {
	s := newScene(t, time.Minute)
	v := url.Values{"from": {"0"}, "to": {strconv.FormatInt(s.extent.LastAt.UnixMilli(), 10)}}
	var whole, again bars
	s.ask(t, "strip", v, &whole)
	s.database.RefuseConnections(t)
	s.database.CutConnections(t)
	for _, shape := range []string{"meta", "strip", "lanes", "tail"} {
		values := v
		if shape == "meta" || shape == "tail" {
			values = nil
		}
		status := s.refused(t, shape, values)
		require.Equal(t, http.StatusServiceUnavailable, int(status.Code), status.Message)
		require.Contains(t, status.Message, "database does not answer")
	}
	s.database.AllowConnections(t)
	s.ask(t, "strip", v, &again)
	require.Equal(t, whole.counted(), again.counted())
}

func TestTailAndInstantReturnPositionsInTheRecord(t *testing.T) {
	s := newScene(t, time.Minute)
	var tail struct{ Seq, Time, Count int64 }
	s.ask(t, "tail", url.Values{"after": {"100"}}, &tail)
	require.Equal(t, s.extent.LastSeq, tail.Seq)
	require.Equal(t, s.extent.LastSeq-100, tail.Count)
	var instant struct{ At struct{ Seq, Time int64 } }
	for _, at := range []string{"seq:500", "now", strconv.FormatInt(s.extent.LastAt.UnixMilli()-1000, 10), s.extent.LastAt.Format(time.RFC3339Nano)} {
		s.ask(t, "instant", url.Values{"at": {at}}, &instant)
		require.Positive(t, instant.At.Seq, at)
	}
}
