package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/internal/recordertest"
	"github.com/kuberewind/kuberewind/internal/serve/delegate"
)

const (
	settings = "/api/v1/namespaces/tenant/configmaps"
	secrets  = "/api/v1/namespaces/tenant/secrets"
	widgets  = "/apis/example.com/v1/namespaces/tenant/widgets"
)

// denied asks who may not read what. It writes to the cluster, and stops its API server at the end.
func denied(t *testing.T, s *system) {
	recorder := recordertest.Start(t, s.arguments...)
	recorder.AwaitReady(t)
	o := newTenancy(t, s)
	o.fill()
	o.recorded()
	fronts := map[delegate.Mode]*front{}
	for _, mode := range delegate.Modes() {
		fronts[mode] = newFront(t, o, mode, apiserver.Access{Recheck: 20 * time.Millisecond, MaxLag: time.Hour})
	}
	inBoth := func(name string, test func(t *testing.T, o *tenancy, f *front)) {
		for _, mode := range delegate.Modes() {
			t.Run(string(mode)+": "+name, func(t *testing.T) { test(t, o, fronts[mode]) })
		}
	}
	inBoth("the rights of one namespace", ofOneNamespace)
	inBoth("another cluster", ofAnotherCluster)
	inBoth("what others could do", aboutOthers)
	inBoth("a right that is withdrawn", withdrawn)
	t.Run("client certificates", func(t *testing.T) { certificates(t, o, fronts) })
	t.Run("a recorder that lags", func(t *testing.T) { lagging(t, o) })

	old, version := o.root(), o.version()
	o.remove()
	o.recorded()
	inBoth("a namespace that is gone", func(t *testing.T, o *tenancy, f *front) {
		f.refuses(t, o.reader, old+settings, http.StatusForbidden, "no namespace with this name exists now")
		f.gives(t, o.admin, old+settings)
	})
	o.makeNamespace()
	o.fill()
	o.recorded()
	inBoth("a namespace that was made again", func(t *testing.T, o *tenancy, f *front) { recreated(t, o, f, old, version) })

	young := o.root()
	o.removeKind()
	o.recorded()
	fronts[delegate.Self].eventually(t, o.reader, young+widgets, http.StatusForbidden, "the cluster no longer has this resource")
	fronts[delegate.Self].gives(t, o.admin, young+widgets)
	recorder.Terminate(t)
	away(t, o, fronts)
}

// ofOneNamespace asks as a user who may read configmaps, secrets and widgets of a namespace.
func ofOneNamespace(t *testing.T, o *tenancy, f *front) {
	root := o.root()
	for _, path := range []string{settings, settings + "/settings", widgets, "/api/v1", "/apis", "/openapi/v3", "/version", "/healthz"} {
		f.gives(t, o.reader, root+path)
		f.gives(t, o.admin, root+path)
	}
	for _, path := range []string{
		"/api/v1/namespaces/shop/configmaps", "/api/v1/configmaps", "/api/v1/namespaces/tenant/pods", "/api/v1/namespaces", "/api/v1/nodes/worker-1",
		"/api/v1/watch/configmaps", "/api/v1/secrets?fieldSelector=metadata.namespace%3Dtenant",
	} {
		f.refuses(t, o.reader, root+path, http.StatusForbidden, `User \"system:serviceaccount:tenant:reader\" cannot`)
		f.gives(t, o.admin, root+path)
	}
	f.refuses(t, o.reader, root+"/api/v1/namespaces/tenant/pods/none", http.StatusForbidden, `cannot get resource \"pods\"`)
	for token, says := range map[string]string{
		"": "send the bearer token", "nonsense": "does not accept this token", o.tokenUntil(-time.Minute): "does not accept this token",
	} {
		for _, path := range []string{settings, "/version", "/api/v1"} {
			f.refuses(t, token, root+path, http.StatusUnauthorized, says)
		}
	}
	f.gives(t, o.tokenUntil(time.Hour), root+settings) // else an expired token were no more than a wrong one
	f.refuses(t, o.reader, root+settings, http.StatusForbidden, "is not allowed: if clients", func(r *http.Request) { r.Host = "evil.example" })
	f.refuses(t, o.reader, root+settings, http.StatusForbidden, "another origin", func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") })
	f.refuses(t, o.admin, root+settings, http.StatusForbidden, "impersonation is only possible in access reviews", func(r *http.Request) { r.Header.Set("Impersonate-User", "jane") })
}

func ofAnotherCluster(t *testing.T, o *tenancy, f *front) {
	o.other.taken()
	f.gives(t, o.admin, o.root()+settings)
	require.Empty(t, o.other.taken(), "a token went to the live API of another cluster")
	f.refuses(t, o.admin, apiserver.Path(o.scene.Cluster().UID, 5)+"/api/v1/configmaps", http.StatusUnauthorized, "does not accept this token")
	require.NotEmpty(t, o.other.taken())
	f.refuses(t, o.admin, "/clusters/nobody/at/seq:5/api/v1/configmaps", http.StatusForbidden, "has no live API here")
	f.refuses(t, o.admin, "/healthz", http.StatusUnauthorized, "names no cluster")
	mine, theirs := "/session/v1?cluster="+o.uid, "/session/v1?cluster="+o.scene.Cluster().UID
	code, text := f.ask(t, o.reader, "/session/v1/night?cluster="+o.uid, func(r *http.Request) { post(r, `{"at":"now"}`); r.Method = http.MethodPut })
	require.Equal(t, http.StatusCreated, code, text)
	code, text = f.ask(t, o.admin, mine)
	require.Equal(t, http.StatusOK, code, text)
	require.Contains(t, text, `"owner":"system:serviceaccount:tenant:reader"`)
	code, text = f.ask(t, o.reader, "/session/v1/other?cluster="+o.uid, func(r *http.Request) {
		post(r, `{"at":"now","cluster":"`+o.scene.Cluster().UID+`"}`)
		r.Method = http.MethodPut
	})
	require.Equal(t, http.StatusBadRequest, code, text)
	f.gives(t, o.reader, apiserver.SessionPath(o.uid, "night")+settings)
	f.refuses(t, o.reader, apiserver.SessionPath(o.uid, "night")+"/api/v1/configmaps", http.StatusForbidden, "cannot list")
	require.Empty(t, o.other.taken())
	f.refuses(t, o.admin, theirs, http.StatusUnauthorized, "does not accept this token")
	o.other.taken()
	require.Empty(t, o.other.taken())
}

// aboutOthers asks what others could do then: the user needs the right to list roles and bindings.
func aboutOthers(t *testing.T, o *tenancy, f *front) {
	path := o.root() + "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
	ask := func(token, as string) (int, string) {
		return f.ask(t, token, path, func(r *http.Request) {
			post(r, `{"kind":"SelfSubjectAccessReview","apiVersion":"authorization.k8s.io/v1","spec":{"resourceAttributes":{"verb":"list","resource":"pods","namespace":"tenant"}}}`)
			if as != "" {
				r.Header.Set("Impersonate-User", as)
			}
		})
	}
	for token, allowed := range map[string]string{o.reader: `"allowed":false`, o.admin: `"allowed":true`} {
		code, text := ask(token, "")
		require.Equal(t, http.StatusCreated, code, text)
		require.Contains(t, text, allowed)
	}
	code, text := ask(o.reader, "jane")
	require.Equal(t, http.StatusForbidden, code, text)
	code, text = ask(o.admin, "jane")
	require.Equal(t, http.StatusCreated, code, text)
}

func certificates(t *testing.T, o *tenancy, fronts map[delegate.Mode]*front) {
	path := o.root() + settings
	ada, cora := o.system.clients.sign(t, "ada", user.SystemPrivilegedGroup), o.system.clients.sign(t, "cora")
	foreign := newClientCA(t).sign(t, "ada", user.SystemPrivilegedGroup)
	fronts[delegate.Server].with(t, &ada).gives(t, "", path)
	fronts[delegate.Server].with(t, &cora).refuses(t, "", path, http.StatusForbidden, `User \"cora\" cannot list resource \"configmaps\"`)
	fronts[delegate.Server].with(t, &foreign).refuses(t, "", path, http.StatusUnauthorized, "unknown authority")
	fronts[delegate.Self].with(t, &ada).refuses(t, "", path, http.StatusUnauthorized, "a client certificate cannot be checked")
}

func lagging(t *testing.T, o *tenancy) {
	f := newFront(t, o, delegate.Self, apiserver.Access{MaxLag: time.Nanosecond})
	f.refuses(t, o.reader, o.root()+settings, http.StatusForbidden, "the namespace may have been replaced since")
	f.gives(t, o.admin, o.root()+settings)
}

// withdrawn takes a right away under an open watch, and gives it back.
func withdrawn(t *testing.T, o *tenancy, f *front) {
	for _, root := range []string{o.root(), apiserver.LivePath(o.uid)} {
		open := f.watch(t, o.reader, root+settings)
		require.Equal(t, "BOOKMARK", open.next(t).Type)
		o.withdraw()
		end := open.next(t)
		require.Equal(t, "ERROR", end.Type)
		require.EqualValues(t, http.StatusForbidden, end.Object.Code, end.Object.Message)
		f.refuses(t, o.reader, root+settings, http.StatusForbidden, "cannot list")
		o.grant()
		f.eventually(t, o.reader, root+settings, http.StatusOK, "")
	}
}

// recreated asks for what was before the namespace that lives now.
func recreated(t *testing.T, o *tenancy, f *front, old, version string) {
	now, live := o.root(), apiserver.LivePath(o.uid)
	exact, watch := "?resourceVersionMatch=Exact&resourceVersion="+version, "?watch=1&resourceVersion="+version
	var page metav1.PartialObjectMetadataList
	f.read(t, o.admin, now+settings+exact+"&limit=1", &page)
	require.NotEmpty(t, page.Continue)
	next := "?limit=1&continue=" + page.Continue
	for _, path := range []string{old + settings, old + settings + "/settings", now + settings + exact, now + settings + watch, live + settings + exact, live + settings + watch, now + settings + next} {
		f.gives(t, o.admin, path)
		f.refuses(t, o.reader, path, http.StatusForbidden, "the namespace tenant with this name began at")
	}
	f.gives(t, o.reader, now+settings)
	f.gives(t, o.reader, live+settings)

	// A resource may have been quiet since before the namespace. The version of its list is older than the namespace, and a watch begins there.
	var quiet metav1.PartialObjectMetadataList
	f.read(t, o.reader, now+secrets, &quiet)
	o.secretElsewhere()
	o.recorded()
	for _, root := range []string{o.root(), live} {
		f.gives(t, o.reader, root+secrets+"?watch=1&resourceVersion="+quiet.ResourceVersion)
	}
}

// away stops the live API.
func away(t *testing.T, o *tenancy, fronts map[delegate.Mode]*front) {
	path := o.root() + settings
	open := map[delegate.Mode]*events{}
	for mode, f := range fronts {
		f.gives(t, o.reader, path)
		open[mode] = f.watch(t, o.reader, path)
		require.Equal(t, "BOOKMARK", open[mode].next(t).Type)
	}
	require.NoError(t, o.system.plane.APIServer.Stop(t.Context()))
	for mode, f := range fronts {
		for _, token := range []string{o.reader, o.admin, "nonsense"} {
			f.refuses(t, token, path, http.StatusServiceUnavailable, "did not say who may read")
			f.refuses(t, token, strings.TrimSuffix(path, settings)+"/version", http.StatusServiceUnavailable, "did not say who may read")
		}
		end := open[mode].next(t)
		require.Equal(t, "ERROR", end.Type)
		require.EqualValues(t, http.StatusServiceUnavailable, end.Object.Code, end.Object.Message)
	}
}
