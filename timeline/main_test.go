package timeline_test

import (
	"compress/gzip"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
	"github.com/kuberewind/kuberewind/timeline"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A scene is the recording, served by a Handler that has an auditor's rights.
type scene struct {
	*timeline.Handler
	database *pgtest.Database
	record   *history.Record
	extent   history.Extent
}

func newScene(t *testing.T, patience time.Duration) *scene {
	t.Helper()
	return served(t, pgtest.New(t, scenetest.Record), patience)
}

// served returns a scene of a record.
func served(t *testing.T, db *pgtest.Database, patience time.Duration) *scene {
	t.Helper()
	s := &scene{database: db}
	var err error
	s.record, err = history.Open(t.Context(), db.Login(t, "kuberewind_auditor"), history.Options{})
	require.NoError(t, err)
	t.Cleanup(s.record.Close)
	s.serve(t, patience)
	return s
}

// end returns the instant of the last delta. The instant now would be long after it.
func (s *scene) end() url.Values {
	return url.Values{"at": {"seq:" + strconv.FormatInt(s.extent.LastSeq, 10)}}
}

func millis(t time.Time) string { return strconv.FormatInt(t.UnixMilli(), 10) }

// serve sets the Handler of the record.
func (s *scene) serve(t *testing.T, patience time.Duration) {
	t.Helper()
	var err error
	s.extent, err = s.record.Extent(t.Context())
	require.NoError(t, err)
	c := timeline.Cluster{UID: s.record.Cluster().UID, Name: s.record.Cluster().Name, Record: s.record}
	s.Handler = timeline.New(timeline.Options{Clusters: []timeline.Cluster{c}, Patience: patience, Now: func() time.Time { return s.extent.LastAt }})
	t.Cleanup(s.Close)
}

// do sends a request and returns the raw answer.
func (s *scene) do(t *testing.T, shape string, v url.Values) *http.Response {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, timeline.Root+shape+"?"+v.Encode(), nil)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result()
}

// ask sends a request that must succeed.
func (s *scene) ask(t *testing.T, shape string, v url.Values, into any) {
	t.Helper()
	response := s.do(t, shape, v)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s?%s: %s", shape, v.Encode(), body)
	require.NoError(t, json.Unmarshal(body, into))
}

// refused sends a request that must fail.
func (s *scene) refused(t *testing.T, shape string, v url.Values) metav1.Status {
	t.Helper()
	response := s.do(t, shape, v)
	defer response.Body.Close()
	require.NotEqual(t, http.StatusOK, response.StatusCode, "%s?%s", shape, v.Encode())
	require.Equal(t, "no-store", response.Header.Get("Cache-Control"))
	var status metav1.Status
	require.NoError(t, json.NewDecoder(response.Body).Decode(&status))
	require.Equal(t, response.StatusCode, int(status.Code))
	require.Equal(t, "Status", status.Kind)
	return status
}

func TestMetaListsSeveralClustersIfTheRequestNamesNone(t *testing.T) {
	s := newScene(t, time.Minute)
	own := timeline.Cluster{UID: s.record.Cluster().UID, Name: "shop", Record: s.record}
	s.Handler = timeline.New(timeline.Options{Clusters: []timeline.Cluster{own, {UID: "another", Name: "bakery", Record: s.record}}})
	t.Cleanup(s.Close)
	var choice map[string]any
	s.ask(t, "meta", nil, &choice)
	require.Equal(t, map[string]any{"clusters": []any{map[string]any{"uid": own.UID, "name": "shop"}, map[string]any{"uid": "another", "name": "bakery"}}}, choice)
	require.Contains(t, s.refused(t, "strip", url.Values{"from": {"0"}, "to": {"1"}}).Message, "give cluster=UID")
	var meta struct{ Cluster string }
	s.ask(t, "meta", url.Values{"cluster": {"another"}}, &meta)
	require.Equal(t, own.UID, meta.Cluster, "it is the same record")
}

func TestAnAnswerIsCompressedAndNotCached(t *testing.T) {
	s := newScene(t, time.Minute)
	r := httptest.NewRequest(http.MethodGet, timeline.Root+"meta", nil)
	r.Header.Set("Accept-Encoding", "gzip, br")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	require.Equal(t, "no-store", w.Header().Get("Cache-Control"))
	require.Empty(t, w.Header().Get("ETag"))
	require.Equal(t, "gzip", w.Header().Get("Content-Encoding"))
	plain, err := gzip.NewReader(w.Body)
	require.NoError(t, err)
	var meta struct {
		Seq        int64
		Cluster    string
		First      struct{ Seq, Time int64 }
		Head       struct{ Seq, Time int64 }
		Recording  struct{ Now bool }
		Resources  []struct{ Resource, Kind string }
		Namespaces []string
	}
	require.NoError(t, json.NewDecoder(plain).Decode(&meta))
	require.Equal(t, s.extent.LastSeq, meta.Seq)
	require.Equal(t, s.extent.FirstAt.UnixMilli(), meta.First.Time)
	require.False(t, meta.Recording.Now, "the recording is old")
	require.Contains(t, meta.Namespaces, "shop")
	require.Contains(t, meta.Resources, struct{ Resource, Kind string }{"deployments.apps", "Deployment"})
}

func TestTheRecordEndsNowIfARecorderFollowsTheCluster(t *testing.T) {
	b := booktest.NewShop(t)
	b.Now = time.Now().Add(-5 * time.Minute)
	b.List()
	s := served(t, b.DB, time.Minute)
	requireState := func(renewed string, now bool, state history.Condition, text string) {
		t.Helper()
		b.Renewed(renewed)
		for shape, asked := range map[string]url.Values{"meta": nil, "tail": {"after": {"1"}}} {
			var answer struct {
				Recording struct {
					Now   bool
					State history.Condition
					Text  string
				}
			}
			s.ask(t, shape, asked, &answer)
			require.Equal(t, now, answer.Recording.Now, shape)
			require.Equal(t, state, answer.Recording.State, shape)
			require.Contains(t, answer.Recording.Text, text)
			require.Contains(t, answer.Recording.Text, "The last commit was at 20")
		}
	}
	b.Watched(delta.Added, "configmaps", "menu", "", "")
	requireState("now()", false, history.Quiet, "The recorder test has committed nothing for 5m")
	b.Now = time.Now()
	b.Watched(delta.Updated, "configmaps", "menu", `"labels":{"a":"b"},`, "")
	requireState("now()", true, history.Following, "The recorder test records.")
	requireState("now() - interval '11 seconds'", false, history.Stopped, "Start the recorder.")
	requireState("'-infinity'", false, history.Stopped, "No recorder is running.")
	b.Close()
	b.Open()
	requireState("now()", false, history.Starting, "The recorder test has begun, and has committed nothing yet.")
}
