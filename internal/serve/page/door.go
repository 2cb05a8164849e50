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

// Live asks live clusters who calls and what they may read. *delegate.Delegate is one.
type Live interface {
	serve.Authenticator
	// Cluster is the UID of the cluster that knows the caller of a context, "" if none does.
	Cluster(ctx context.Context) string
	// Authorize returns nil if that cluster lets the caller do what the attributes say.
	Authorize(ctx context.Context, cluster string, a authorizer.Attributes) error
}

// A door decides who may read. It is the Authenticator of the page's listener.
type door struct {
	callers serve.Authenticator
	live    Live // nil on loopback, where one token reads all
}

// Authenticate implements serve.Authenticator. The page itself is for everyone: it has no data.
func (d *door) Authenticate(r *http.Request) (*http.Request, error) {
	switch {
	case !partOf(r.URL.Path).hasData():
		return r, nil
	case impersonates(r.Header):
		return nil, apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("nobody reads the page as another: leave out the Impersonate headers"))
	case d.live != nil && serve.Bearer(r) == "":
		return nil, apierrors.NewUnauthorized("send the bearer token with which you use the live cluster, such as kubectl create token prints; no certificate and no user header counts here")
	}
	return d.callers.Authenticate(r)
}

// impersonates reports whether a request is to be answered as if another had sent it.
func impersonates(header http.Header) bool {
	for name := range header {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

// everyone is the key of what all callers may read.
const everyone = ""

// allow decides whether the caller of a request may read, and gives the UID of the cluster that said so. On loopback that is everyone.
func (d *door) allow(r *http.Request) (uid string, err error) {
	caller, ok := request.UserFrom(r.Context())
	switch {
	case !ok:
		return "", apierrors.NewUnauthorized("nobody knows who asks")
	case d.live == nil:
		return everyone, nil
	}
	uid = d.live.Cluster(r.Context())
	return uid, advised(d.live.Authorize(r.Context(), uid, all(caller)))
}

// all is the right that the page needs: it shows every resource, and past ones too.
func all(caller user.Info) authorizer.Attributes {
	return authorizer.AttributesRecord{User: caller, Verb: "list", APIGroup: "*", APIVersion: "*", Resource: "*", ResourceRequest: true}
}

// advised adds to a no what who gets it can do.
func advised(err error) error {
	var known apierrors.APIStatus
	if !apierrors.IsForbidden(err) || !errors.As(err, &known) {
		return err
	}
	status := known.Status()
	status.Message += ` (the page shows the whole cluster, so it needs the right to list "*.*"; with fewer rights, use the API of the past: replay kubeconfig --own-credentials)`
	return &apierrors.StatusError{ErrStatus: status}
}
