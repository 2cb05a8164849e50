package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
)

func TestARightInANamespaceCountsWhileARecorderRecords(t *testing.T) {
	p := serve(t)
	handler, err := apiserver.New(apiserver.Options{Records: []*history.Record{p.record}, Access: apiserver.Access{
		Authorize: func(_ context.Context, _ string, a authorizer.Attributes) error {
			if a.GetNamespace() == "" {
				return apierrors.NewForbidden(schema.GroupResource{Resource: a.GetResource()}, a.GetName(), errors.New("it is for one namespace"))
			}
			return nil
		},
	}})
	require.NoError(t, err)
	t.Cleanup(handler.Close)
	p.server = httptest.NewServer(handler)
	t.Cleanup(p.server.Close)
	p.database.Exec(t, `INSERT INTO kuberewind.leaders SELECT uid, 'test', '', now(), '6s' FROM kuberewind.clusters`)
	for _, c := range []struct {
		name, committed, renewed string
		code                     int
	}{
		{"a busy recorder", "now()", "now()", http.StatusOK},
		{"a quiet minute", "now() - interval '1 minute'", "now()", http.StatusOK},
		{"a recorder that was killed", "now() - interval '1 minute'", "now() - interval '11 seconds'", http.StatusForbidden},
		{"a recorder that has ended", "now() - interval '11 seconds'", "'-infinity'", http.StatusForbidden},
		{"a recorder that does not see the cluster", "now() - interval '3 minutes'", "now()", http.StatusForbidden},
	} {
		p.database.Exec(t, `UPDATE kuberewind.heads SET observed_at = `+c.committed)
		p.database.Exec(t, `UPDATE kuberewind.leaders SET renewed_at = `+c.renewed)
		code, _, body := p.ask(http.MethodGet, "/api/v1/namespaces/shop/configmaps")
		require.Equal(t, c.code, code, "%s: %s", c.name, body)
		if c.code == http.StatusForbidden {
			require.Contains(t, body, "the namespace may be another by now", c.name)
		}
	}
	code, _, _ := p.ask(http.MethodGet, "/api/v1/configmaps")
	require.Equal(t, http.StatusForbidden, code)
}
