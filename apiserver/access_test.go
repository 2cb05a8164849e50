package apiserver_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// authorized makes a live cluster decide who may read.
func (p *past) authorized(may func(authorizer.Attributes) bool) {
	p.Helper()
	handler, err := apiserver.New(apiserver.Options{Records: []*history.Record{p.record}, Access: apiserver.Access{
		Authorize: func(_ context.Context, _ string, a authorizer.Attributes) error {
			if may(a) {
				return nil
			}
			return apierrors.NewForbidden(schema.GroupResource{Resource: a.GetResource()}, a.GetName(), errors.New("the live cluster says no"))
		},
	}})
	require.NoError(p, err)
	p.Cleanup(handler.Close)
	p.server = httptest.NewServer(handler)
	p.Cleanup(p.server.Close)
}

func TestARightInANamespaceAppliesWhileARecorderRecords(t *testing.T) {
	for name, c := range map[string]struct {
		renewed string        // by the recorder
		before  time.Duration // the last commit
		lag     time.Duration // of that commit
		chosen  func(*pen)    // a recorder that has not committed
		code    int
	}{
		"a busy recorder":                          {renewed: "now()", code: http.StatusOK},
		"a quiet minute":                           {renewed: "now()", before: time.Minute, code: http.StatusOK},
		"a recorder that was killed":               {renewed: "now() - interval '11 seconds'", before: time.Minute, code: http.StatusForbidden},
		"a recorder that has ended":                {renewed: "'-infinity'", before: 11 * time.Second, code: http.StatusForbidden},
		"a recorder that was just chosen":          {renewed: "now()", before: time.Minute, chosen: (*pen).choose, code: http.StatusForbidden},
		"a recorder that begins":                   {renewed: "now()", before: time.Minute, chosen: (*pen).Open, code: http.StatusForbidden},
		"a recorder that lags":                     {renewed: "now()", lag: 11 * time.Second, code: http.StatusForbidden},
		"a recorder that does not see the cluster": {renewed: "now()", before: 3 * time.Minute, code: http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			pen := newPenOf(t, c.before)
			namespaces := pen.follow(postgres.StreamSpec{Resource: "namespaces", Kind: "Namespace", Version: "v1"})
			pen.commit(pen.set(namespaces, "", "a", "l1"))
			pen.Lag = c.lag
			pen.commit(pen.set(0, "a", "o1", "l1"))
			if c.chosen != nil {
				c.chosen(pen)
			}
			live := serveLive(t, pen)
			live.authorized(func(a authorizer.Attributes) bool { return a.GetNamespace() != "" })
			pen.leads(c.renewed)
			code, _, body := live.ask(http.MethodGet, "/api/v1/namespaces/a/configmaps")
			require.Equal(t, c.code, code, body)
			if c.code == http.StatusForbidden {
				require.Contains(t, body, "the namespace may have been replaced since")
			}
			code, _, _ = live.ask(http.MethodGet, "/api/v1/configmaps")
			require.Equal(t, http.StatusForbidden, code)
		})
	}
}

func TestARightToASubresourceGivesNoWatchOfTheObject(t *testing.T) {
	p := serve(t)
	p.authorized(func(a authorizer.Attributes) bool { return a.GetSubresource() != "" })
	code, _, body := p.ask(http.MethodGet, "/apis/apps/v1/namespaces/shop/deployments/web/scale")
	require.Equal(t, http.StatusOK, code, body)
	for _, subresource := range []string{"scale", "status"} {
		code, _, body = p.ask(http.MethodGet, "/apis/apps/v1/watch/namespaces/shop/deployments/web/"+subresource+"?timeoutSeconds=1")
		require.Equal(t, http.StatusNotFound, code, body)
	}
}
