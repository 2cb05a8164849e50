package apiserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
)

// asker is the header that names the user, in these tests.
const asker = "X-Asker"

// serveSessions serves the recording to users that have names.
func serveSessions(t *testing.T) *past {
	t.Helper()
	p := serve(t)
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := r.Header.Get(asker); name != "" {
			r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: name}))
		}
		p.handler.ServeHTTP(w, r)
	}))
	t.Cleanup(p.server.Close)
	return p
}

// as sends a request to the JSON API, and returns the code and the body.
func (p *past) as(name, method, path, body string) (int, string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), method, p.server.URL+path, strings.NewReader(body))
	require.NoError(p, err)
	r.Header.Set(asker, name)
	response, err := p.server.Client().Do(r)
	require.NoError(p, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(p, err)
	return response.StatusCode, string(text)
}

// set makes or moves a session.
func (p *past) set(name, body string) (state apiserver.Session) {
	p.Helper()
	code, text := p.as("", http.MethodPut, "/session/v1/"+name, body)
	require.Less(p, code, 300, text)
	require.NoError(p, json.Unmarshal([]byte(text), &state))
	return state
}

// state reads a session.
func (p *past) state(name string) (state apiserver.Session) {
	p.Helper()
	code, text := p.as("", http.MethodGet, "/session/v1/"+name, "")
	require.Equal(p, http.StatusOK, code, text)
	require.NoError(p, json.Unmarshal([]byte(text), &state))
	return state
}

// listed returns the pods of a root by UID, with their versions, and the seq of the answer.
func (p *past) listed(root string) (versions map[string]string, rv string, seq int64) {
	p.Helper()
	code, header, body := p.ask(http.MethodGet, "~"+root+"/api/v1/pods")
	require.Equal(p, http.StatusOK, code, body)
	var l struct {
		Metadata metav1.ListMeta
		Items    []struct {
			Metadata struct{ UID, ResourceVersion string }
		}
	}
	require.NoError(p, json.Unmarshal([]byte(body), &l))
	versions = map[string]string{}
	for _, item := range l.Items {
		versions[item.Metadata.UID] = item.Metadata.ResourceVersion
	}
	seq, err := strconv.ParseInt(header.Get(apiserver.SeqHeader), 10, 64)
	require.NoError(p, err)
	return versions, l.Metadata.ResourceVersion, seq
}

func TestASessionShowsTheInstantToWhichItIsSet(t *testing.T) {
	p := serveSessions(t)
	uid := p.record.Cluster().UID
	for i, seq := range []int64{p.last / 2, p.last, p.last / 3} {
		state := p.set("night", fmt.Sprintf(`{"at": "seq:%d"}`, seq))
		require.Equal(t, apiserver.Session{
			Name: "night", Cluster: uid, Path: apiserver.SessionPath(uid, "night"), Time: state.Time, Seq: seq, Speed: 1, Expires: state.Expires, Notes: state.Notes,
		}, state)
		require.Equal(t, state.Seq, p.state("night").Seq)
		require.Equal(t, state.Time, p.state("night").Time, "it stands")
		here, rv, at := p.listed(state.Path)
		there, rvThere, _ := p.listed(apiserver.Path(uid, seq))
		require.Equal(t, seq, at)
		require.Equal(t, rvThere, rv, "set %d times", i+1)
		require.Equal(t, there, here)
	}
}

func TestASessionIsSetToAnInstantInEachForm(t *testing.T) {
	p := serveSessions(t)
	_, rv, _ := p.listed(apiserver.Path(p.record.Cluster().UID, p.last/2))
	point, err := p.record.Resolve(t.Context(), history.AtSeq(p.last/2), history.Scope{})
	require.NoError(t, err)
	for text, at := range map[string]history.Instant{
		"seq:" + strconv.FormatInt(p.last/2, 10): history.AtSeq(p.last / 2),
		point.Time.Format(time.RFC3339Nano):      history.At(point.Time),
		"rv:" + rv:                               history.AtRV(rv),
		"now":                                    history.Now(),
		"-1s":                                    history.Ago(time.Second),
	} {
		found, err := p.record.Resolve(t.Context(), at, history.Scope{})
		require.NoError(t, err)
		state := p.set("night", fmt.Sprintf(`{"at": %q}`, text))
		require.Equal(t, found.Seq, state.Seq, text)
		if text == "now" {
			require.Contains(t, strings.Join(state.Notes, " "), "the record ends at")
		}
	}
}

func TestTheAnswerToEachBadSessionRequestSaysWhatToWrite(t *testing.T) {
	p := serveSessions(t)
	uid := p.record.Cluster().UID
	p.set("mine", `{"at": "seq:100"}`)
	before := p.state("mine")
	for _, c := range []struct {
		name, method, path, body string
		code                     int
		says                     string
	}{
		{"no instant", "PUT", "/session/v1/new", `{}`, 400, `say where it begins with \"at\", such as`},
		{"no body", "PUT", "/session/v1/new", ``, 400, `send a JSON object such as`},
		{"no object", "PUT", "/session/v1/new", `[]`, 400, `send a JSON object such as`},
		{"more than one object", "PUT", "/session/v1/mine", `{}{}`, 400, `send a JSON object such as`},
		{"an unknown field", "PUT", "/session/v1/mine", `{"at": "now", "sped": 2}`, 400, `unknown field \"sped\"`},
		{"a field in capitals", "PUT", "/session/v1/mine", `{"At": "now"}`, 400, `unknown field \"At\"`},
		{"a field twice", "PUT", "/session/v1/mine", `{"speed": 1, "speed": 2}`, 400, `duplicate field \"speed\"`},
		{"a speed that is a text", "PUT", "/session/v1/mine", `{"speed": "60"}`, 400, `send a JSON object such as`},
		{"a speed of 0", "PUT", "/session/v1/mine", `{"speed": 0}`, 400, `from 0.1 to 1000; to stop the clock, pause it`},
		{"a speed of a new one", "PUT", "/session/v1/new", `{"at": "now", "speed": 1001}`, 400, `from 0.1 to 1000`},
		{"a speed beyond numbers", "PUT", "/session/v1/mine", `{"speed": 1e999}`, 400, `send a JSON object such as`},
		{"an instant that is none", "PUT", "/session/v1/mine", `{"at": "tea time", "speed": 2}`, 400, `-10m, -2d`},
		{"an instant before the record", "PUT", "/session/v1/mine", `{"at": "2001-01-01T00:00:00Z"}`, 400, `before the record began`},
		{"another cluster", "PUT", "/session/v1/new", `{"at": "now", "cluster": "x"}`, 400, uid},
		{"another cluster than it has", "PUT", "/session/v1/mine", `{"cluster": "x"}`, 400, `end it first, or choose another name`},
		{"a name with capitals", "PUT", "/session/v1/Night", `{"at": "now"}`, 400, `a DNS label, such as night-1`},
		{"a name that is long", "PUT", "/session/v1/" + strings.Repeat("a", 64), `{"at": "now"}`, 400, `no more than 63`},
		{"a path below", "GET", "/session/v1/mine/clock", ``, 400, `a DNS label`},
		{"the name of live", "PUT", "/session/v1/live", `{"at": "now"}`, 400, `cannot be changed; choose another name`},
		{"the end of live", "DELETE", "/session/v1/live", ``, 400, `cannot be changed`},
		{"a large body", "PUT", "/session/v1/mine", `{"at": "` + strings.Repeat("x", 70_000) + `"}`, 413, `more than 65536 bytes`},
		{"another method", "POST", "/session/v1/mine", `{}`, 405, `GET, PUT, DELETE`},
		{"another method of all", "DELETE", "/session/v1", ``, 405, `use GET`},
		{"one that is not there", "GET", "/session/v1/none", ``, 404, `replay session none --at INSTANT`},
		{"the end of one that is not there", "DELETE", "/session/v1/none", ``, 404, `replay session none --at INSTANT`},
		{"the root of one that is not there", "GET", apiserver.SessionPath(uid, "none") + "/api", ``, 410, `replay session none --at INSTANT`},
		{"the root of a name that is none", "GET", apiserver.SessionPath(uid, "%22") + "/api", ``, 410, `replay session NAME --at INSTANT`},
		{"its root in another cluster", "GET", "/clusters/x/session/mine/api", ``, 404, `no cluster with UID`},
		{"no name in the path", "GET", "/clusters/" + uid + "/session//api", ``, 404, `is not served`},
	} {
		code, body := p.as("", c.method, c.path, c.body)
		require.Equal(t, c.code, code, "%s: %s", c.name, body)
		require.Contains(t, body, c.says, c.name)
		var s metav1.Status
		require.NoError(t, json.Unmarshal([]byte(body), &s), c.name)
		require.NotEmpty(t, s.Reason, c.name)
		require.Less(t, len(s.Message), 600, c.name)
	}
	after := p.state("mine")
	before.Expires, after.Expires = time.Time{}, time.Time{}
	require.Equal(t, before, after, "no bad request changes anything")
	code, body := p.as("", http.MethodGet, "/session/v1/", "")
	require.Equal(t, http.StatusOK, code)
	var l apiserver.SessionList
	require.NoError(t, json.Unmarshal([]byte(body), &l))
	require.Len(t, l.Sessions, 1, "and none is made")
}

func TestASessionBelongsToItsCreator(t *testing.T) {
	p := serveSessions(t)
	code, _ := p.as("jane", http.MethodPut, "/session/v1/night", `{"at": "seq:100"}`)
	require.Equal(t, http.StatusCreated, code)
	for _, method := range []string{http.MethodPut, http.MethodDelete} {
		code, body := p.as("joe", method, "/session/v1/night", `{"at": "seq:200"}`)
		require.Equal(t, http.StatusForbidden, code)
		require.Contains(t, body, `it belongs to \"jane\"`)
	}
	code, body := p.as("joe", http.MethodGet, "/session/v1/night", "")
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, body, `"seq":100`, "others may read it")
	code, _ = p.as("jane", http.MethodPut, "/session/v1/night", `{"at": "seq:200"}`)
	require.Equal(t, http.StatusOK, code)
	code, _ = p.as("jane", http.MethodDelete, "/session/v1/night", "")
	require.Equal(t, http.StatusOK, code)
	code, _ = p.as("joe", http.MethodPut, "/session/v1/night", `{"at": "seq:200"}`)
	require.Equal(t, http.StatusCreated, code, "an ended one leaves its name")
}

func TestMoreSessionsThanAllowedAreRefused(t *testing.T) {
	p := serveSessions(t)
	put := func(user, name string) (int, string) {
		return p.as(user, http.MethodPut, "/session/v1/"+name, `{"at": "seq:100"}`)
	}
	for i := range 32 {
		code, body := put(fmt.Sprintf("user%d", i/8), fmt.Sprintf("s%d", i))
		require.Equal(t, http.StatusCreated, code, body)
		if i == 7 {
			code, body = put("user0", "more")
			require.Equal(t, http.StatusTooManyRequests, code)
			require.Contains(t, body, "you have 8 sessions")
		}
	}
	code, body := put("user9", "more")
	require.Equal(t, http.StatusTooManyRequests, code)
	require.Contains(t, body, "32 sessions are open")
	code, _ = put("user0", "s0")
	require.Equal(t, http.StatusOK, code, "to move one is no further one")
	code, _ = p.as("user0", http.MethodDelete, "/session/v1/s0", "")
	require.Equal(t, http.StatusOK, code)
	code, body = put("user9", "more")
	require.Equal(t, http.StatusCreated, code, body)
}

// streams returns the streams of a resource.
func (p *past) streams(resource string) (ids []int32) {
	p.Helper()
	all, err := p.record.Streams(p.Context())
	require.NoError(p, err)
	for _, s := range all {
		if s.Resource == resource {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// recorded returns the recorded versions of pods after a seq, as a watch sends them.
func (p *past) recorded(after int64) (versions []string) {
	p.Helper()
	for d, err := range p.record.Deltas(p.Context(), history.Query{Scope: history.Scope{Streams: p.streams("pods")}, FromSeq: after + 1}) {
		require.NoError(p, err)
		versions = append(versions, d.RV)
	}
	return versions
}

func TestAWatchOfAPlayingSessionSendsEachDeltaOnce(t *testing.T) {
	p := serveSessions(t)
	state := p.set("night", fmt.Sprintf(`{"at": "seq:%d"}`, p.last/3))
	p.root = state.Path
	watch := p.watch("/api/v1/pods?watch=1&resourceVersion=" + p.version("/api/v1/pods"))
	require.Equal(t, http.StatusOK, watch.code)
	expected := p.recorded(p.last / 3)
	require.Greater(t, len(expected), 50)
	p.set("night", `{"playing": true, "speed": 1000}`)
	var got []string
	for range expected {
		got = append(got, watch.next().Object.Metadata.ResourceVersion)
	}
	require.Equal(t, expected, got)
	require.Equal(t, 1, p.state("night").Watches)

	back := p.set("night", fmt.Sprintf(`{"at": "seq:%d"}`, p.last/2))
	require.True(t, back.Playing)
	e := watch.next()
	require.Equal(t, "ERROR", e.Type, "a seek backward ends watches")
	require.Equal(t, http.StatusGone, e.Object.Code)
}

func TestASeekForwardSendsAllDeltasAtOnce(t *testing.T) {
	p := serveSessions(t)
	state := p.set("night", fmt.Sprintf(`{"at": "seq:%d"}`, p.last/3))
	p.root = state.Path
	watch := p.watch("/api/v1/pods?watch=1&resourceVersion=" + p.version("/api/v1/pods"))
	p.set("night", `{"at": "now"}`)
	for _, rv := range p.recorded(p.last / 3) {
		require.Equal(t, rv, watch.next().Object.Metadata.ResourceVersion)
	}
	code, _ := p.as("", http.MethodDelete, "/session/v1/night", "")
	require.Equal(t, http.StatusOK, code)
	for watch.body.Scan() { // The watch ends.
		require.NotContains(t, watch.body.Text(), `"MODIFIED"`)
	}
	code, header, body := p.ask(http.MethodGet, "/api/v1/pods")
	require.Equal(t, http.StatusGone, code)
	require.Contains(t, body, "replay session night --at INSTANT")
	require.Contains(t, header.Get("Warning"), "replay session night --at INSTANT", "kubectl shows it")
}

func TestAListAboveTheClockFailsAtOnceWithoutRetryAfter(t *testing.T) {
	p := serveSessions(t)
	p.handler.SetAfter(func(time.Duration) <-chan time.Time {
		t.Error("it waits")
		return time.After(0)
	})
	end := p.version("/api/v1/pods")
	p.root = p.set("night", fmt.Sprintf(`{"at": "seq:%d"}`, p.last/3)).Path
	s := p.status(http.MethodGet, "/api/v1/pods?resourceVersion="+end+"&resourceVersionMatch=NotOlderThan")
	require.EqualValues(t, http.StatusGatewayTimeout, s.Code)
	_, header, _ := p.ask(http.MethodGet, "/api/v1/pods?resourceVersion="+end)
	require.Empty(t, header.Get("Retry-After"), "client-go would repeat the request ten times, a second apart")
	s = p.status(http.MethodGet, "/api/v1/pods?watch=1&resourceVersion="+end)
	require.EqualValues(t, http.StatusGone, s.Code)
}

func TestASessionAtTheEndOfTheRecordContinuesWithNewDeltas(t *testing.T) {
	pen := newPen(t)
	p := serveLive(t, pen)
	pen.commit(pen.set(0, "a", "one", "l1"))
	pen.commit(pen.set(0, "a", "one", "l2"))
	state := p.set("night", `{"at": "seq:2", "playing": true, "speed": 1000}`)
	p.root = state.Path
	watch := p.watch("/api/v1/configmaps?watch=1&resourceVersion=" + p.version("/api/v1/configmaps"))
	for i := range 3 {
		pen.commit(pen.set(0, "a", "one", fmt.Sprintf("r%d", i)))
		require.Equal(t, strconv.Itoa(pen.RV), watch.next().Object.Metadata.ResourceVersion)
	}
	require.Eventually(t, func() bool { return p.state("night").AtEnd }, 5*time.Minute, 20*time.Millisecond)
}

// TestAGapThatEndsWithoutADeltaEndsTheWatchesOfASession uses a clock that passes the end of a gap, and one that is set after it.
func TestAGapThatEndsWithoutADeltaEndsTheWatchesOfASession(t *testing.T) {
	for name, change := range map[string]string{"played": `{"playing": true, "speed": 1000}`, "sought": `{"at": %q}`} {
		t.Run(name, func(t *testing.T) {
			pen := newPen(t)
			p := serveLive(t, pen)
			pen.commit(pen.set(0, "a", "one", "l1"))
			pen.interrupt(0)
			pen.Now = pen.Now.Add(time.Minute)
			pen.RV++
			pen.list(0, "expired")
			behind := pen.Now.Format(time.RFC3339Nano)
			pen.Now = pen.Now.Add(30 * 24 * time.Hour) // The next delta comes much later.
			pen.commit(pen.set(0, "a", "two", "l1"), pen.set(1, "a", "pod", "l1"))

			state := p.set("night", `{"at": "seq:1"}`)
			p.root = state.Path
			open := func() (configMaps, pods *events) {
				configMaps = p.watch("/api/v1/configmaps?watch=1&resourceVersion=" + p.version("/api/v1/configmaps"))
				return configMaps, p.watch("/api/v1/pods?watch=1&resourceVersion=" + p.version("/api/v1/pods"))
			}
			ended, other := open()
			if name == "sought" {
				change = fmt.Sprintf(change, behind)
			}
			p.set("night", change)
			e := ended.next()
			require.Equal(t, "ERROR", e.Type)
			require.Equal(t, http.StatusGone, e.Object.Code)

			// After a new list, the client continues. Watches of other resources continue, too.
			again, _ := open()
			p.set("night", `{"at": "seq:3"}`)
			require.Equal(t, "two", again.next().Object.Metadata.Name)
			require.Equal(t, "pod", other.next().Object.Metadata.Name)
		})
	}
}
