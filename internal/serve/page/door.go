package page

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kuberewind/kuberewind/internal/serve"
)

// Live asks live clusters who the caller is and what the caller may read. *delegate.Delegate implements it.
type Live interface {
	serve.Authenticator
	// Cluster returns the UID of the cluster that knows the caller of a context, "" if none does.
	Cluster(ctx context.Context) string
	// Authorize returns nil if that cluster allows the caller to do what the attributes describe.
	Authorize(ctx context.Context, cluster string, a authorizer.Attributes) error
}

// A door decides who may read. It is the Authenticator of the page's listener.
type door struct {
	callers serve.Authenticator
	live    Live // nil on loopback, where one token reads all data
}

// Authenticate implements serve.Authenticator. The page itself needs no user, because it has no data.
func (d *door) Authenticate(r *http.Request) (*http.Request, error) {
	switch {
	case !partOf(r.URL.Path).hasData():
		return r, nil
	case impersonates(r.Header):
		return nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("the page does not allow impersonation: send the request without Impersonate headers"))
	case d.live != nil && serve.Bearer(r) == "":
		return nil, apierrors.NewUnauthorized("send the bearer token that you use for the live cluster, such as kubectl create token prints; the page ignores certificates and user headers")
	}
	return d.callers.Authenticate(r)
}

// impersonates reports whether a request has Impersonate headers.
func impersonates(header http.Header) bool {
	for name := range header {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

// everyone is the key of the data that all callers may read.
const everyone = ""

// allow decides whether the caller of a request may read, and returns the UID of the cluster that decided. On loopback it
// returns everyone.
func (d *door) allow(r *http.Request) (uid string, err error) {
	caller, ok := request.UserFrom(r.Context())
	switch {
	case !ok:
		return "", apierrors.NewUnauthorized("the request has no authenticated user")
	case d.live == nil:
		return everyone, nil
	}
	uid = d.live.Cluster(r.Context())
	return uid, advised(d.live.Authorize(r.Context(), uid, all(caller)))
}

// all returns the right that the page needs: it shows every resource, also past ones.
func all(caller user.Info) authorizer.Attributes {
	return authorizer.AttributesRecord{User: caller, Verb: "list", APIGroup: "*", APIVersion: "*", Resource: "*", ResourceRequest: true}
}

// advised adds advice to a denial.
func advised(err error) error {
	var known apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &known) {
		return err
	}
	status := known.Status()
	status.Message += ` (the page shows the whole cluster, so it needs the right to list "*.*"; with fewer rights, use the API of the past: replay kubeconfig --own-credentials)`
	return &apierrors.StatusError{ErrStatus: status}
}
