package apiserver_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/websocket"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kuberewind/kuberewind/apiserver"
)

const (
	// headlampDiscovery is the Accept header of Headlamp's discovery. Its parameters have another order than client-go's.
	headlampDiscovery = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
	// headlampProtocol is the protocol that its frontend offers for each WebSocket. If the server does not accept it, the browser closes the socket.
	headlampProtocol = "base64.binary.k8s.io"
)

// An answer has the parts of a body that Headlamp reads.
type answer struct {
	*testing.T
	text string
	body map[string]any
}

// at returns the field of a path such as status.allowed.
func (a *answer) at(path string) any {
	a.Helper()
	value, _, err := unstructured.NestedFieldNoCopy(a.body, strings.Split(path, ".")...)
	require.NoError(a, err, a.text)
	return value
}

// list processes a list as Headlamp does: each item gets its kind from the list.
func (a *answer) list(kind string) {
	a.Helper()
	require.Equal(a, kind, a.at("kind"))
	require.NotEmpty(a, a.at("apiVersion"))
	_, err := strconv.ParseInt(a.at("metadata.resourceVersion").(string), 10, 64)
	require.NoError(a, err, "it compares versions as numbers")
	items, _ := a.at("items").([]any)
	require.NotEmpty(a, items)
	for _, item := range items {
		uid, _, _ := unstructured.NestedString(item.(map[string]any), "metadata", "uid")
		require.NotEmpty(a, uid, "it knows an object by its UID")
	}
}

// listable returns the resources that Headlamp reads from discovery: the resources of the first version with the verb list.
func (a *answer) listable() (resources []string) {
	a.Helper()
	var list struct {
		Items []struct {
			Versions []struct {
				Resources []struct {
					Resource, Scope string
					Verbs           []string
					ResponseKind    struct{ Kind string }
				}
			}
		}
	}
	require.NoError(a, json.Unmarshal([]byte(a.text), &list))
	for _, group := range list.Items {
		for _, r := range group.Versions[0].Resources {
			if slices.Contains(r.Verbs, "list") && r.ResponseKind.Kind != "" && r.Scope != "" {
				resources = append(resources, r.Resource)
			}
		}
	}
	return resources
}

// may returns the access review that Headlamp sends before it shows a button.
func may(verb string) string {
	return `{"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": {"resourceAttributes": ` +
		`{"verb": "` + verb + `", "group": "apps", "resource": "deployments", "namespace": "shop", "name": "web"}}}`
}

// TestRequestsOfHeadlampAreAnsweredAsItNeeds replays the requests of Headlamp from the choice of the cluster to the first views.
func TestRequestsOfHeadlampAreAnsweredAsItNeeds(t *testing.T) {
	served := serve(t)
	served.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.handler.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "ada"})))
	}))
	t.Cleanup(served.server.Close)
	for _, c := range []struct {
		name, path, accept, post string
		code                     int
		needs                    func(*answer)
	}{
		{name: "whether the cluster is healthy", path: "/healthz", code: 200, needs: func(a *answer) { require.Equal(a, "ok", a.text) }},
		{name: "the version, for the top bar", path: "/version", code: 200, needs: func(a *answer) { require.NotEmpty(a, a.at("gitVersion")) }},
		{
			name: "whether the user is known; the body has no kind", path: "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", post: `{"spec": {"namespace": "default"}}`, code: 201,
			needs: func(a *answer) { require.NotEmpty(a, a.at("status.resourceRules")) },
		},
		{
			name: "who the user is", path: "/apis/authentication.k8s.io/v1/selfsubjectreviews", post: `{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}`, code: 201,
			needs: func(a *answer) { require.Equal(a, "ada", a.at("status.userInfo.username")) },
		},
		{
			name: "whether it shows an object", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", post: may("get"), code: 201,
			needs: func(a *answer) { require.Equal(a, true, a.at("status.allowed")) },
		},
		{
			name: "whether it shows the button that deletes", path: "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", post: may("delete"), code: 201,
			needs: func(a *answer) { require.Equal(a, false, a.at("status.allowed")) },
		},
		{
			name: "discovery of the core group", path: "/api", accept: headlampDiscovery, code: 200,
			needs: func(a *answer) { require.Subset(a, a.listable(), []string{"pods", "nodes", "events"}) },
		},
		{
			name: "discovery of the other groups", path: "/apis", accept: headlampDiscovery, code: 200,
			needs: func(a *answer) { require.Subset(a, a.listable(), []string{"deployments", "jobs", "certificates"}) },
		},
		{name: "the older discovery of the core group", path: "/api", code: 200, needs: func(a *answer) { require.Equal(a, []any{"v1"}, a.at("versions")) }},
		{name: "the older discovery of the other groups", path: "/apis", code: 200, needs: func(a *answer) { require.NotEmpty(a, a.at("groups")) }},
		{name: "namespaces, for the filter", path: "/api/v1/namespaces", code: 200, needs: func(a *answer) { a.list("NamespaceList") }},
		{name: "definitions, for the sidebar", path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", code: 200, needs: func(a *answer) { a.list("CustomResourceDefinitionList") }},
		{name: "Nodes, for the overview", path: "/api/v1/nodes", code: 200, needs: func(a *answer) { a.list("NodeList") }},
		{name: "events, for the overview", path: "/api/v1/events?limit=2000", code: 200, needs: func(a *answer) { a.list("EventList") }},
		{name: "a view of Deployments", path: "/apis/apps/v1/namespaces/shop/deployments", code: 200, needs: func(a *answer) { a.list("DeploymentList") }},
		{name: "a page of Pods", path: "/api/v1/pods?limit=3", code: 200, needs: func(a *answer) { a.list("PodList"); require.NotEmpty(a, a.at("metadata.continue")) }},
		{
			name: "one object", path: "/apis/apps/v1/namespaces/shop/deployments/web", code: 200,
			needs: func(a *answer) {
				require.Equal(a, "web", a.at("metadata.name"))
				require.NotEmpty(a, a.at("metadata.uid"))
			},
		},
		{name: "what Nodes use, which it can do without", path: "/apis/metrics.k8s.io/v1beta1/nodes", code: 404, needs: func(*answer) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := *served
			p.T = t
			got := &answer{T: t}
			var code int
			if c.post == "" {
				code, _, got.text = p.ask(http.MethodGet, c.path, "Accept", c.accept)
			} else {
				code, got.text = p.post(c.path, "application/json", strings.NewReader(c.post))
			}
			require.Equal(t, c.code, code, got.text)
			if strings.HasPrefix(got.text, "{") {
				require.NoError(t, json.Unmarshal([]byte(got.text), &got.body))
			}
			c.needs(got)
		})
	}
}

// A view is Headlamp's list of Pods: the versions by UID, and its newest version.
type view struct {
	pods   map[string]string
	newest string
}

// apply handles an event as Headlamp does: it drops ERRORs, and events whose version is not above the newest one.
func (v *view) apply(e event) {
	m := e.Object.Metadata
	switch {
	case m.ResourceVersion != "" && !above(m.ResourceVersion, v.newest):
		return
	case e.Type == "ADDED" || e.Type == "MODIFIED":
		v.pods[m.UID] = m.ResourceVersion
	case e.Type == "DELETED":
		delete(v.pods, m.UID)
	default:
		return
	}
	v.newest = m.ResourceVersion
}

func above(one, other string) bool {
	a, errA := strconv.ParseInt(one, 10, 64)
	b, errB := strconv.ParseInt(other, 10, 64)
	return errors.Join(errA, errB) == nil && a > b
}

// A socket is a watch of Headlamp.
type socket struct {
	*testing.T
	conn *websocket.Conn
}

// dial opens a watch of Pods, as Headlamp does.
func (p *past) dial(query string) (*socket, error) {
	p.Helper()
	config, err := websocket.NewConfig(strings.Replace(p.server.URL, "http", "ws", 1)+p.root+"/api/v1/pods?watch=1&"+query, p.server.URL)
	require.NoError(p, err)
	config.Protocol = []string{headlampProtocol}
	conn, err := websocket.DialConfig(config)
	if err != nil {
		return nil, err
	}
	require.NoError(p, conn.SetReadDeadline(time.Now().Add(time.Minute)))
	p.Cleanup(func() { _ = conn.Close() }) // The watch may have ended.
	return &socket{p.T, conn}, nil
}

func (s *socket) next() (e event, err error) {
	var text string
	if err := websocket.Message.Receive(s.conn, &text); err != nil {
		return e, err
	}
	require.NoError(s, json.Unmarshal([]byte(text), &e))
	return e, nil
}

// shown returns a newly loaded view.
func (p *past) shown() *view {
	pods, rv, _ := p.listed(p.root)
	return &view{pods: pods, newest: rv}
}

func (v *view) watch() string { return "resourceVersion=" + v.newest }

func TestHeadlampFollowsASeekForwardAndNeedsAReloadAfterASeekBack(t *testing.T) {
	p := serveSessions(t)
	p.root = p.set("night", fmt.Sprintf(`{"at": "seq:%d"}`, p.last/3)).Path
	shown := p.shown()
	watch, err := p.dial(shown.watch())
	require.NoError(t, err)

	p.set("night", fmt.Sprintf(`{"at": "seq:%d"}`, p.last))
	for range p.recorded(p.last / 3) {
		e, err := watch.next()
		require.NoError(t, err)
		shown.apply(e)
	}
	require.Equal(t, p.shown(), shown, "forward, it shows the instant by itself")

	late := p.shown()
	p.set("night", fmt.Sprintf(`{"at": "seq:%d"}`, p.last/2))
	last := event{}
	for e := last; err == nil; e, err = watch.next() {
		shown.apply(e)
		last = e
	}
	require.ErrorIs(t, err, io.EOF, "back, the watch ends")
	require.Equal(t, "ERROR", last.Type, "and says so before")
	require.Equal(t, http.StatusGone, last.Object.Code)
	require.Equal(t, late, shown, "and Headlamp shows what it had")
	_, err = p.dial(shown.watch())
	require.Error(t, err, "no watch goes on from a version of later")

	shown = p.shown() // The user reloads.
	require.NotEqual(t, late, shown)
	pods, _, _ := p.listed(apiserver.Path(p.record.Cluster().UID, p.last/2))
	require.Equal(t, pods, shown.pods)
	watch, err = p.dial(shown.watch())
	require.NoError(t, err)
	p.set("night", fmt.Sprintf(`{"at": "seq:%d"}`, p.last))
	for range p.recorded(p.last / 2) {
		e, err := watch.next()
		require.NoError(t, err)
		shown.apply(e)
	}
	require.Equal(t, late, shown, "and forward again")
}

// TestAWatchAcceptsTheProtocolOfABrowser checks the answer itself. If the server accepts none of the offered protocols, a browser closes the socket.
func TestAWatchAcceptsTheProtocolOfABrowser(t *testing.T) {
	p := serve(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.server.URL+p.root+"/api/v1/pods?watch=1&fieldSelector=metadata.name%3Dnobody", nil)
	require.NoError(t, err)
	for name, value := range map[string]string{
		"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
		"Origin": "http://localhost:4466", "Sec-WebSocket-Protocol": headlampProtocol,
	} {
		r.Header.Set(name, value)
	}
	response, err := p.server.Client().Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Equal(t, http.StatusSwitchingProtocols, response.StatusCode)
	require.Equal(t, headlampProtocol, response.Header.Get("Sec-WebSocket-Protocol"))
}
