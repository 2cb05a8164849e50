package apiserver_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/websocket"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// past serves the recording of the scene.
type past struct {
	*testing.T
	database *pgtest.Database
	record   *history.Record
	handler  *apiserver.Handler
	server   *httptest.Server
	root     string // at the end of the record
	last     int64
}

func serve(t *testing.T) *past {
	t.Helper()
	database := pgtest.New(t, scenetest.Record)
	rec, err := history.Open(t.Context(), database.URL(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(rec.Close)
	handler, err := apiserver.New(apiserver.Options{Records: []*history.Record{rec}, MaxWatches: 2})
	require.NoError(t, err)
	t.Cleanup(handler.Close)
	extent, err := rec.Extent(t.Context())
	require.NoError(t, err)
	p := &past{T: t, database: database, record: rec, handler: handler, server: httptest.NewServer(handler), last: extent.LastSeq}
	t.Cleanup(p.server.Close)
	p.root = apiserver.Path(rec.Cluster().UID, extent.LastSeq)
	return p
}

// ask returns the code, the headers and the body of an answer. The path is below the root at the end, or, with ~, below the server.
func (p *past) ask(method, path string, headers ...string) (int, http.Header, string) {
	p.Helper()
	target := p.server.URL + p.root + path
	if rest, ok := strings.CutPrefix(path, "~"); ok {
		target = p.server.URL + rest
	}
	r, err := http.NewRequestWithContext(p.Context(), method, target, nil)
	require.NoError(p, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := p.server.Client().Do(r)
	require.NoError(p, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(p, err)
	return response.StatusCode, response.Header, string(body)
}

func (p *past) status(method, path string, headers ...string) metav1.Status {
	p.Helper()
	code, _, body := p.ask(method, path, headers...)
	var s metav1.Status
	require.NoError(p, json.Unmarshal([]byte(body), &s), body)
	require.Equal(p, "Status", s.Kind, body)
	require.EqualValues(p, code, s.Code)
	require.NotEmpty(p, s.Reason)
	require.NotEmpty(p, s.Message)
	require.Less(p, len(s.Message), 2000)
	return s
}

func TestEachBadRequestGetsAStatusWithTheReason(t *testing.T) {
	p := serve(t)
	uid := p.record.Cluster().UID
	clusters := "~/clusters/" + uid
	forged := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"kuberewind.io/v1","seq":` + strconv.FormatInt(p.last, 10) + `,"rv":"1","start":"a","mac":"AAAA"}`))
	foreign := base64.RawURLEncoding.EncodeToString([]byte(`{"v":"meta.k8s.io/v1","rv":5,"start":"a"}`))
	for _, c := range []struct {
		name, method, path string
		headers            []string
		code               int32
		says               string
	}{
		{name: "no prefix", path: "~/api/v1/pods", code: 404, says: "/clusters/<UID>/at/seq:<N>"},
		{name: "another cluster", path: "~/clusters/nobody/at/seq:5/api", code: 404, says: uid},
		{name: "no instant", path: clusters + "/then/seq:5/api", code: 404, says: "/at/seq:<N>"},
		{name: "a time", path: clusters + "/at/now/api", code: 400, says: p.root},
		{name: "a leading zero", path: clusters + "/at/seq:0" + strconv.FormatInt(p.last, 10) + "/api", code: 400, says: p.root},
		{name: "nonsense", path: clusters + "/at/" + strings.Repeat("x", 5000) + "/api", code: 400, says: "seq:<N>"},
		{name: "negative", path: clusters + "/at/seq:-1/api", code: 400, says: "seq:<N>"},
		{name: "beyond the end", path: clusters + "/at/seq:" + strconv.FormatInt(p.last+1, 10) + "/api/v1/pods", code: 404, says: "ends at seq:"},
		{name: "a slash in a name", path: "/api/v1/namespaces/shop/pods/a%2Fb", code: 400, says: "slash"},
		{name: "a name that is no UTF-8", path: "/api/v1/namespaces/shop/pods/a%FF", code: 400, says: "UTF-8"},
		{name: "a name with a NUL", path: "/api/v1/namespaces/shop/pods/a%00", code: 400, says: "NUL"},
		{name: "a write", method: "POST", path: "/api/v1/namespaces/shop/pods", code: 405, says: "read-only"},
		{name: "a delete", method: "DELETE", path: "/api/v1/namespaces/shop/pods/x", code: 405, says: "read-only"},
		{name: "impersonation", path: "/api/v1/pods", headers: []string{"Impersonate-User", "jane"}, code: 403, says: "can-i"},
		{name: "logs", path: "/api/v1/namespaces/shop/pods/x/log", code: 404, says: "replay log"},
		{name: "an object that is not there", path: "/api/v1/namespaces/shop/pods/nobody", code: 404, says: `pods "nobody" not found`},
		{name: "a bad label selector", path: "/api/v1/pods?labelSelector=a%3D%3D%3Db", code: 400, says: "unable to parse"},
		{name: "an unknown field", path: "/api/v1/pods?fieldSelector=spec.nothing%3Dx", code: 400, says: "not supported"},
		{name: "a hostile selector", path: "/api/v1/pods?labelSelector=" + url.QueryEscape(strings.Repeat("(", 10_000)), code: 400, says: ""},
		{name: "a match without a version", path: "/api/v1/pods?resourceVersionMatch=Exact", code: 422, says: "resourceVersionMatch"},
		{name: "initial events of a list", path: "/api/v1/pods?sendInitialEvents=true", code: 422, says: "sendInitialEvents"},
		{name: "no timeout", path: "/api/v1?timeout=soon", code: 400, says: "invalid timeout"},
		{name: "no number", path: "/api/v1/pods?resourceVersion=abc", code: 400, says: "resource version"},
		{name: "a version to come", path: "/api/v1/pods?resourceVersion=99999999&resourceVersionMatch=NotOlderThan", code: 504, says: "Too large"},
		{name: "no token", path: "/api/v1/pods?limit=1&continue=%25%25", code: 400, says: "continue"},
		{name: "a forged token", path: "/api/v1/pods?limit=1&continue=" + forged, code: 410, says: "Start the list again"},
		{name: "a real server's token", path: "/api/v1/pods?limit=1&continue=" + foreign, code: 410, says: "Start the list again"},
		{name: "a watch of what was before the record", path: "/api/v1/pods?watch=1&resourceVersion=1", code: 410, says: ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := *p
			p.T = t
			if c.method == "" {
				c.method = http.MethodGet
			}
			s := p.status(c.method, c.path, c.headers...)
			require.Equal(t, c.code, s.Code, s.Message)
			require.Contains(t, s.Message, c.says)
		})
	}
}

func TestAnErrorForTheUsageOfPodsNamesWhatTheRecordHas(t *testing.T) {
	p := serve(t)
	p.database.Exec(t, `UPDATE kuberewind.documents SET content = jsonb_set(content::jsonb, '{items,-1}', $${
		"metadata": {"name": "metrics.k8s.io"},
		"versions": [{"version": "v1beta1", "freshness": "Current", "resources": [
			{"resource": "pods", "scope": "Namespaced", "verbs": ["get", "list"], "singularResource": "", "responseKind": {"group": "", "version": "", "kind": "PodMetrics"}}
		]}]}$$, true) WHERE digest IN (SELECT digest FROM kuberewind.server_data WHERE path = '/apis')`)
	s := p.status("GET", "/apis/metrics.k8s.io/v1beta1/namespaces/shop/pods")
	require.EqualValues(t, http.StatusNotFound, s.Code)
	require.Contains(t, s.Message, "the record has no usage of Pods and Nodes")
}

func TestAnEncodedColonIsTheSameInstant(t *testing.T) {
	p := serve(t)
	code, header, _ := p.ask("GET", "~"+strings.Replace(p.root, "seq:", "seq%3A", 1)+"/api/v1/namespaces")
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, strconv.FormatInt(p.last, 10), header.Get(apiserver.SeqHeader))
	code, _, _ = p.ask("GET", "/api/v1/pods?limit=-1")
	require.Equal(t, http.StatusOK, code)
}

type event struct {
	Type   string
	Object struct {
		Code     int // of an ERROR
		Metadata struct {
			Name, Namespace, UID, ResourceVersion string
			Annotations                           map[string]string
		}
	}
}

// watched reads a watch until its first bookmark.
func (p *past) watched(query string) (events []event) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.server.URL+p.root+"/api/v1/pods?watch=1&allowWatchBookmarks=true&"+query, nil)
	require.NoError(p, err)
	response, err := p.server.Client().Do(r)
	require.NoError(p, err)
	defer response.Body.Close()
	require.Equal(p, http.StatusOK, response.StatusCode)
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		var e event
		require.NoError(p, json.Unmarshal(lines.Bytes(), &e))
		events = append(events, e)
		if e.Type == "BOOKMARK" {
			break
		}
	}
	return events
}

func TestAListOfAnEarlierInstantAndItsWatchGiveTheLaterList(t *testing.T) {
	p := serve(t)
	type list struct {
		Metadata struct{ ResourceVersion string }
		Items    []struct {
			Metadata struct{ UID, ResourceVersion string }
		}
	}
	read := func(path string) (versions map[string]string, rv string) {
		code, _, body := p.ask("GET", path)
		require.Equal(t, http.StatusOK, code, body)
		var l list
		require.NoError(t, json.Unmarshal([]byte(body), &l))
		versions = map[string]string{}
		for _, item := range l.Items {
			versions[item.Metadata.UID] = item.Metadata.ResourceVersion
		}
		return versions, l.Metadata.ResourceVersion
	}
	early, rv := read("~" + strings.Replace(p.root, strconv.FormatInt(p.last, 10), strconv.FormatInt(p.last/2, 10), 1) + "/api/v1/pods")
	late, end := read("/api/v1/pods")
	require.NotEqual(t, early, late)
	for _, e := range p.watched("resourceVersion=" + rv) {
		switch m := e.Object.Metadata; e.Type {
		case "ADDED", "MODIFIED":
			early[m.UID] = m.ResourceVersion
		case "DELETED":
			delete(early, m.UID)
		default:
			require.Equal(t, end, m.ResourceVersion)
		}
	}
	require.Equal(t, late, early)
	exact, _ := read("/api/v1/pods?resourceVersionMatch=Exact&resourceVersion=" + rv)
	again, _ := read("~" + strings.Replace(p.root, strconv.FormatInt(p.last, 10), strconv.FormatInt(p.last/2, 10), 1) + "/api/v1/pods")
	require.Equal(t, again, exact)
}

func TestAWatchListEndsItsInitialEventsWithABookmark(t *testing.T) {
	p := serve(t)
	events := p.watched("sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
	last := events[len(events)-1]
	require.Equal(t, "true", last.Object.Metadata.Annotations[metav1.InitialEventsAnnotationKey])
	for _, e := range events[:len(events)-1] {
		require.Equal(t, "ADDED", e.Type)
	}
}

func TestAWatchOverAWebSocketHasTheSameEvents(t *testing.T) {
	p := serve(t)
	config, err := websocket.NewConfig(strings.Replace(p.server.URL, "http", "ws", 1)+p.root+"/api/v1/pods?watch=1&allowWatchBookmarks=true", p.server.URL)
	require.NoError(t, err)
	conn, err := websocket.DialConfig(config)
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	var got []event
	for {
		var text string
		require.NoError(t, websocket.Message.Receive(conn, &text))
		var e event
		require.NoError(t, json.Unmarshal([]byte(text), &e))
		got = append(got, e)
		if e.Type == "BOOKMARK" {
			break
		}
	}
	require.Equal(t, p.watched(""), got)
}

func TestMoreWatchesThanAllowedAreRefused(t *testing.T) {
	p := serve(t)
	for range 2 {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.server.URL+p.root+"/api/v1/pods?watch=1", nil)
		require.NoError(t, err)
		response, err := p.server.Client().Do(r)
		require.NoError(t, err)
		defer response.Body.Close()
		require.Equal(t, http.StatusOK, response.StatusCode)
	}
	require.EqualValues(t, http.StatusTooManyRequests, p.status("GET", "/api/v1/pods?watch=1").Code)
}

func TestPagesHaveTheSameObjectsAsTheWholeList(t *testing.T) {
	p := serve(t)
	names := func(query string) (found []string, next string) {
		code, _, body := p.ask("GET", "/api/v1/pods?"+query)
		require.Equal(t, http.StatusOK, code, body)
		var l struct {
			Metadata metav1.ListMeta
			Items    []struct{ Metadata struct{ UID string } }
		}
		require.NoError(t, json.Unmarshal([]byte(body), &l))
		for _, item := range l.Items {
			found = append(found, item.Metadata.UID)
		}
		return found, l.Metadata.Continue
	}
	for _, selector := range []string{"", "&labelSelector=app%3Dweb"} {
		whole, next := names(selector)
		require.Empty(t, next)
		var paged []string
		for token := ""; ; {
			page, next := names("limit=3" + selector + "&continue=" + token)
			require.LessOrEqual(t, len(page), 3)
			paged = append(paged, page...)
			if token = next; token == "" {
				break
			}
		}
		require.Equal(t, whole, paged)
	}
}

func TestHashedValuesOfSecretsAreBase64(t *testing.T) {
	p := serve(t)
	code, _, body := p.ask("GET", "/api/v1/secrets")
	require.Equal(t, http.StatusOK, code)
	var l struct {
		Items []struct{ Data map[string][]byte }
	}
	require.NoError(t, json.Unmarshal([]byte(body), &l), "typed clients decode it")
	hashes := 0
	for _, item := range l.Items {
		for _, value := range item.Data {
			require.True(t, strings.HasPrefix(string(value), "hmac-sha256:"))
			hashes++
		}
	}
	require.Positive(t, hashes)
}

func TestAStateDerivedFromAnEarlierOneEqualsTheRecord(t *testing.T) {
	p := serve(t)
	at := func(seq int64, path string) string {
		return "~" + strings.Replace(p.root, strconv.FormatInt(p.last, 10), strconv.FormatInt(seq, 10), 1) + path
	}
	for _, path := range []string{"/api/v1/pods", "/api/v1/events", "/apis/apps/v1/replicasets", "/api/v1/namespaces/shop/pods"} {
		fresh, err := apiserver.New(apiserver.Options{Records: []*history.Record{p.record}, CacheBytes: 1}) // caches nothing, so that each list is rebuilt
		require.NoError(t, err)
		other := &past{T: t, record: p.record, server: httptest.NewServer(fresh), root: p.root, last: p.last}
		for seq := p.last / 3; seq <= p.last; seq += p.last / 7 {
			_, _, derived := p.ask(http.MethodGet, at(seq, path))
			_, _, rebuilt := other.ask(http.MethodGet, at(seq, path))
			require.Equal(t, rebuilt, derived, "%s at seq:%d", path, seq)
		}
		other.server.Close()
		fresh.Close()
	}
}

func TestNoWatchCrossesAGapThatAListClosed(t *testing.T) {
	p := serve(t)
	// At a Pod's delta in the middle, a list closed a gap that had begun twenty seconds earlier.
	p.database.Exec(t, `
		INSERT INTO kuberewind.gaps_data (cluster, gap, stream, cause, detail, from_rv, from_at, opened_batch, to_rv, to_at, closed_batch, outcome)
		SELECT cluster, 1000, stream, 'expired', 'for this test', rv, observed_at - interval '20 seconds', batch, rv, observed_at, batch, 'relisted'
		FROM (SELECT d.cluster, d.stream, d.rv, d.observed_at, d.seq, b.batch FROM kuberewind.deltas_data d
			JOIN kuberewind.streams s ON s.cluster = d.cluster AND s.stream = d.stream AND s.resource = 'pods'
			JOIN kuberewind.batches b ON b.cluster = d.cluster AND d.seq BETWEEN b.first_seq AND b.last_seq
			WHERE d.type = 2 ORDER BY d.seq OFFSET 40 LIMIT 1) middle`)
	gaps, err := p.record.Completeness().Gaps(t.Context(), history.Scope{})
	require.NoError(t, err)
	gap := gaps[len(gaps)-1]
	require.Equal(t, delta.CauseExpired, gap.Cause)
	var early, within int64
	for d, err := range p.record.Deltas(t.Context(), history.Query{Scope: history.Scope{Streams: []int32{gap.Stream.ID}}}) {
		require.NoError(t, err)
		if d.ObservedAt.Before(gap.FromAt) {
			early = max(early, d.Seq)
		}
		if d.ObservedAt.Before(gap.ToAt) {
			within = max(within, d.Seq)
		}
	}
	list := func(seq int64) (rv string, warnings []string) {
		path := "~" + strings.Replace(p.root, strconv.FormatInt(p.last, 10), strconv.FormatInt(seq, 10), 1) + "/api/v1/pods"
		code, header, body := p.ask(http.MethodGet, path)
		require.Equal(t, http.StatusOK, code, body)
		var l struct{ Metadata metav1.ListMeta }
		require.NoError(t, json.Unmarshal([]byte(body), &l))
		return l.Metadata.ResourceVersion, header.Values("Warning")
	}
	rv, warnings := list(early)
	require.Empty(t, warnings)
	s := p.status(http.MethodGet, "/api/v1/pods?watch=1&resourceVersion="+rv)
	require.EqualValues(t, http.StatusGone, s.Code)
	require.Equal(t, metav1.StatusReasonExpired, s.Reason)
	require.Contains(t, s.Message, gap.ToRV)

	_, warnings = list(within)
	require.Len(t, warnings, 1)
	require.Contains(t, warnings[0], "changes of pods between")
	rv, _ = list(p.last)
	require.Equal(t, "BOOKMARK", p.watched("resourceVersion=" + rv)[0].Type, "behind the gap a watch goes on")
}
