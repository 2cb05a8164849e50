package apiserver_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
)

// names returns the names of a page, and the token of the next page.
func (p *past) names(query string) (names []string, next string, header http.Header) {
	p.Helper()
	code, header, body := p.ask(http.MethodGet, "/api/v1/configmaps?"+query)
	require.Equal(p, http.StatusOK, code, body)
	var l struct {
		Metadata metav1.ListMeta
		Items    []struct{ Metadata struct{ Name string } }
	}
	require.NoError(p, json.Unmarshal([]byte(body), &l))
	for _, item := range l.Items {
		names = append(names, item.Metadata.Name)
	}
	return names, l.Metadata.Continue, header
}

func TestAListOfTheEndOfTheRecordContinuesAtItsFirstInstant(t *testing.T) {
	pen := newPen(t)
	live := serveLive(t, pen)
	pen.commit(pen.set(0, "a", "o1", "l1"), pen.set(0, "a", "o2", "l1"), pen.set(0, "a", "o3", "l1"))
	first, token, header := live.names("limit=2")
	require.Equal(t, []string{"o1", "o2"}, first)
	pen.commit(pen.set(0, "a", "o4", "l1"), pen.set(0, "a", "o0", "l1"))
	rest, end, later := live.names("limit=2&continue=" + token)
	require.Equal(t, []string{"o3"}, rest, "the list is of the seq of its first page")
	require.Empty(t, end)
	require.Equal(t, header.Get(apiserver.SeqHeader), later.Get(apiserver.SeqHeader))
	all, _, _ := live.names("")
	require.Equal(t, []string{"o0", "o1", "o2", "o3", "o4"}, all)

	other := serveLive(t, pen)
	require.EqualValues(t, http.StatusGone, other.status(http.MethodGet, "/api/v1/configmaps?limit=2&continue="+token).Code, "it is of another server")
}

func TestARequestWaitsForAVersionThatIsNotRecordedYet(t *testing.T) {
	pen := newPen(t)
	live := serveLive(t, pen)
	pen.commit(pen.set(0, "a", "o1", "l1"))
	live.version("/api/v1/configmaps")
	answer := make(chan []string, 1)
	next := strconv.Itoa(pen.RV + 1)
	go func() {
		response, err := live.server.Client().Get(live.server.URL + live.root + "/api/v1/configmaps?resourceVersionMatch=NotOlderThan&resourceVersion=" + next)
		if err != nil {
			answer <- []string{err.Error()}
			return
		}
		defer response.Body.Close()
		answer <- []string{response.Status}
	}()
	pen.commit(pen.set(0, "a", "o2", "l1"))
	require.Equal(t, []string{"200 OK"}, <-answer)
}

func TestAVersionThatIsNotRecordedInThreeSecondsIsATimeout(t *testing.T) {
	pen := newPen(t)
	live := serveLive(t, pen)
	pen.commit(pen.set(0, "a", "o1", "l1"))
	asked, over := make(chan time.Duration, 1), make(chan time.Time)
	live.handler.SetAfter(func(d time.Duration) <-chan time.Time {
		asked <- d
		return over
	})
	answer := make(chan metav1.Status, 1)
	go func() {
		answer <- live.status(http.MethodGet, "/api/v1/configmaps?resourceVersionMatch=NotOlderThan&resourceVersion=1000000")
	}()
	require.Equal(t, 3*time.Second, <-asked)
	pen.commit(pen.set(0, "a", "o2", "l1")) // The request continues to wait.
	require.Empty(t, answer)
	close(over)
	s := <-answer
	require.EqualValues(t, http.StatusGatewayTimeout, s.Code)
	require.Equal(t, metav1.CauseTypeResourceVersionTooLarge, s.Details.Causes[0].Type, "clients begin again")
}

func TestAnAnswerOfTheEndOfTheRecordWarnsThatTheClusterMayHaveChanged(t *testing.T) {
	for name, c := range map[string]struct {
		renewed string        // by the recorder
		before  time.Duration // the last commit
		lag     time.Duration // of that commit
		chosen  func(*pen)    // a recorder that has not committed
		says    string
	}{
		"a busy recorder":                        {renewed: "now()"},
		"a quiet minute":                         {renewed: "now()", before: time.Minute},
		"a recorder that has ended":              {renewed: "'-infinity'", says: "no recorder records this cluster: the last commit was at "},
		"a recorder that was killed":             {renewed: "now() - interval '11 seconds'", says: "no recorder records this cluster: the last commit was at "},
		"a recorder that was just chosen":        {renewed: "now()", before: time.Minute, chosen: (*pen).choose, says: "the recorder next was chosen and has committed nothing yet: the last commit was at "},
		"a recorder that begins":                 {renewed: "now()", before: time.Minute, chosen: (*pen).Open, says: "the recorder test was chosen and has committed nothing yet: the last commit was at "},
		"a recorder that lags":                   {renewed: "now()", lag: 11 * time.Second, says: "the recorder is 11s behind the cluster: the last commit was at "},
		"a recorder that does not see a cluster": {renewed: "now()", before: time.Hour, says: "has committed nothing for 1h0m"},
	} {
		t.Run(name, func(t *testing.T) {
			pen := newPenOf(t, c.before)
			live := serveLive(t, pen)
			pen.Lag = c.lag
			pen.commit(pen.set(0, "a", "o1", "l1"))
			if c.chosen != nil {
				c.chosen(pen)
			}
			for _, path := range []string{"/api/v1/configmaps", "/api/v1/namespaces/a/configmaps/o1", "/api/v1", "/version"} {
				pen.leads(c.renewed)
				_, header, _ := live.ask(http.MethodGet, path)
				if c.says == "" {
					require.Empty(t, header.Values("Warning"), path)
					continue
				}
				require.Len(t, header.Values("Warning"), 1, path)
				require.Contains(t, header.Get("Warning"), c.says)
				require.Contains(t, header.Get("Warning"), pen.Now.Add(pen.Lag).Format("2006-01-02T15:04:05"), "when the last commit was")
			}
		})
	}
}

func TestAWatchOverADamagedDeltaEndsSoThatClientsListAgain(t *testing.T) {
	pen := newPen(t)
	live := serveLive(t, pen)
	pen.commit(pen.set(0, "a", "o1", "l1"))
	rv := live.version("/api/v1/configmaps")
	pen.commit(pen.set(0, "a", "o1", "l2"))
	pen.DB.Exec(t, `UPDATE kuberewind.deltas_data SET digest = decode(repeat('00', 16), 'hex') WHERE seq = 2`)
	e := live.watch("/api/v1/configmaps?watch=1&resourceVersion=" + rv).next()
	require.Equal(t, "ERROR", e.Type)
	require.Equal(t, http.StatusGone, e.Object.Code)
}

const (
	slowWatches      = 6
	connectionsOfFew = 2
	largeBytes       = 100_000 // more than a server buffers for a client
)

func TestClientsThatDoNotReadHoldNoConnectionToTheDatabase(t *testing.T) {
	pen := newPen(t)
	for i := range 10 {
		pen.commit(pen.set(0, "a", "large", "l"+strings.Repeat(strconv.Itoa(i), largeBytes)))
	}
	target, err := url.Parse(pen.DB.URL())
	require.NoError(t, err)
	query := target.Query()
	query.Set("pool_max_conns", strconv.Itoa(connectionsOfFew))
	target.RawQuery = query.Encode()
	record, err := history.Open(t.Context(), target.String(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(record.Close)
	live := serveRecord(t, record, func(handler http.Handler) *httptest.Server {
		pipe := apiserver.NewPipe()
		server := &httptest.Server{Listener: pipe, Config: &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}}
		server.Start()
		server.Client().Transport = &http.Transport{DialContext: pipe.Dial}
		return server
	})
	var watches []*events
	for range slowWatches {
		watches = append(watches, live.watch("/api/v1/configmaps?watch=1&resourceVersion=11"))
	}
	require.NotEmpty(t, live.version("/api/v1/pods"), "the others do not wait for them")
	for _, w := range watches {
		w.body.Buffer(nil, 2*largeBytes)
		for want := 12; want <= pen.RV; want++ { // all deltas arrive, at the client's pace
			require.Equal(t, strconv.Itoa(want), w.next().Object.Metadata.ResourceVersion)
		}
		w.cancel()
	}
}
