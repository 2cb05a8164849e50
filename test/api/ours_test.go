package api_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/controlplane"
)

// pastServer serves the record. Its configuration is of the last instant.
func pastServer(t *testing.T, s *system) *server {
	t.Helper()
	handler, err := apiserver.New(apiserver.Options{Records: []*history.Record{s.record}})
	require.NoError(t, err)
	t.Cleanup(handler.Close)
	listening := httptest.NewServer(asAdmin(handler))
	t.Cleanup(listening.Close)
	root := func(r revision) string { return listening.URL + apiserver.Path(s.record.Cluster().UID, r.seq) }
	return &server{config: &rest.Config{Host: root(s.end()), QPS: -1}, client: listening.Client(), root: root}
}

// asAdmin names the caller, as the listener in front of the handler does.
func asAdmin(next http.Handler) http.Handler {
	admin := &user.DefaultInfo{Name: controlplane.AdminName, Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), admin)))
	})
}
