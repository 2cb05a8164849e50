package delegate

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// A Mode says whose rights the requests to the live API use.
type Mode string

// The modes.
const (
	Self   Mode = "live-self" // the caller's rights
	Server Mode = "live"      // the server's own rights
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Self, Server} }

// Options of a Delegate.
type Options struct {
	Mode     Mode
	Clusters map[string]*rest.Config // the live API of each cluster, by the cluster's UID
	Now      func() time.Time        // the cache's clock; nil means time.Now
}

// A Delegate authenticates and authorizes through live APIs. It is safe for concurrent use.
type Delegate struct {
	mode     Mode
	clusters map[string]reviewer
	kept     *kept
}

// A reviewer asks one live API. If an error is Unauthorized, Forbidden or ServiceUnavailable, it is the answer.
type reviewer interface {
	caller(ctx context.Context, c *credential) (user.Info, error)
	allowed(ctx context.Context, c *credential, subject user.Info, a authorizer.Attributes) (verdict, error)
}

// A verdict allows, or denies with a reason.
type verdict struct {
	allowed bool
	reason  string
}

// New makes a Delegate.
func New(o Options) (*Delegate, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	d := &Delegate{mode: o.Mode, clusters: map[string]reviewer{}, kept: newKept(o.Now)}
	for uid, config := range o.Clusters {
		r, err := newReviewer(o.Mode, config)
		if err != nil {
			return nil, fmt.Errorf("the live API of cluster %s: %w", uid, err)
		}
		d.clusters[uid] = r
	}
	return d, nil
}

func newReviewer(mode Mode, config *rest.Config) (reviewer, error) {
	if err := secure(config); err != nil {
		return nil, err
	}
	switch mode {
	case Self:
		return newSelf(config)
	case Server:
		return newServer(config)
	}
	return nil, fmt.Errorf("unknown authorization mode %q: use %s or %s", mode, Self, Server)
}

// secure refuses an API to which no token may be sent.
func secure(config *rest.Config) error {
	url, _, err := rest.DefaultServerUrlFor(config)
	switch {
	case err != nil:
		return err
	case url.Scheme != "https":
		return fmt.Errorf("%s is not https: tokens would be sent unencrypted", url)
	case config.Insecure:
		return errors.New("insecure-skip-tls-verify is set: any server with this name would receive tokens")
	}
	return nil
}

// A caller is the sender of a request, with the cluster whose live API knows the sender.
type caller struct {
	cluster    string
	credential *credential
}

type callerKey struct{}

// Certificates reports whether clients can authenticate with certificates.
func (d *Delegate) Certificates() bool { return d.mode == Server }

// Authenticate returns the request with its caller in the context, without the token. If it returns an error, that error is
// the answer.
func (d *Delegate) Authenticate(r *http.Request) (*http.Request, error) {
	uid, err := d.clusterOf(r)
	if err != nil {
		return nil, err
	}
	c := credentialOf(r, d.Certificates())
	if c == nil {
		return nil, apierrors.NewUnauthorized(d.missing())
	}
	found, err := d.user(r.Context(), uid, c)
	if err != nil {
		return nil, err
	}
	ctx := context.WithValue(request.WithUser(r.Context(), found), callerKey{}, &caller{cluster: uid, credential: c})
	r = r.Clone(ctx)
	r.Header.Del("Authorization")
	return r, nil
}

// user returns the owner of the credential.
func (d *Delegate) user(ctx context.Context, uid string, c *credential) (user.Info, error) {
	found, err := remember(d.kept, d.kept.key(uid, c), func() (user.Info, error) { return d.clusters[uid].caller(ctx, c) })
	return found, about(uid, err)
}

func (d *Delegate) missing() string {
	if d.mode == Self {
		return "send the bearer token that you use for the live cluster: in this mode (" + string(Self) +
			") a client certificate cannot be checked; use a token, or start the server with --authorization " + string(Server)
	}
	return "send the bearer token or the client certificate that you use for the live cluster"
}

// clusterParameter names the cluster if the path does not, as for sessions.
const clusterParameter = "cluster"

// clusterOf returns the cluster of a URL. If the URL names none, it is the only cluster of this server.
func (d *Delegate) clusterOf(r *http.Request) (uid string, err error) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/clusters/")
	uid, _, _ = strings.Cut(rest, "/")
	if !ok {
		uid = r.URL.Query().Get(clusterParameter)
	}
	if ok || uid != "" {
		if d.clusters[uid] == nil {
			return "", apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf(
				"cluster %.60q has no live API here, which would decide who may read it: start replay serve with --live UID=KUBECONFIG", uid))
		}
		return uid, nil
	}
	if len(d.clusters) != 1 {
		return "", apierrors.NewUnauthorized("the URL names no cluster, and this server has several: add ?cluster=UID, so that the token is sent only to that cluster's live API")
	}
	for uid = range d.clusters {
	}
	return uid, nil
}

// Cluster returns the UID of the cluster that knows the caller of a context, "" if none does.
func (d *Delegate) Cluster(ctx context.Context) string {
	if who, ok := ctx.Value(callerKey{}).(*caller); ok {
		return who.cluster
	}
	return ""
}

// Authorize returns nil if the live API allows the caller of the context to do in a cluster what the attributes describe. A
// Forbidden error is a denial. With any other error, the right is unknown.
func (d *Delegate) Authorize(ctx context.Context, uid string, a authorizer.Attributes) error {
	who, ok := ctx.Value(callerKey{}).(*caller)
	if !ok || who.cluster != uid {
		return forbidden(a, "the caller was not authenticated by the live API of this cluster")
	}
	// A watch can be older than its caller's token.
	subject, err := d.user(ctx, uid, who.credential)
	if err != nil {
		return err
	}
	key := d.kept.key(uid, who.credential, spec(a))
	v, err := remember(d.kept, key, func() (verdict, error) { return d.clusters[uid].allowed(ctx, who.credential, subject, a) })
	if err == nil && !v.allowed {
		return forbidden(a, v.reason)
	}
	return about(uid, err)
}

// forbidden returns a denial in the words of an API server.
func forbidden(a authorizer.Attributes, reason string) error {
	name := ""
	if a.GetUser() != nil {
		name = a.GetUser().GetName()
	}
	where := "at the cluster scope"
	if a.GetNamespace() != "" {
		where = fmt.Sprintf("in the namespace %q", a.GetNamespace())
	}
	if reason != "" {
		reason = ": " + reason
	}
	resource := schema.GroupResource{Group: a.GetAPIGroup(), Resource: a.GetResource()}
	text := fmt.Sprintf("User %q cannot %s resource %q in API group %q %s%s", name, a.GetVerb(), a.GetResource(), a.GetAPIGroup(), where, reason)
	return apierrors.NewForbidden(resource, a.GetName(), errors.New(text))
}

// about turns an error that is no answer into a 503.
func about(uid string, err error) error {
	if err == nil || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the live API of cluster %s did not say who may read: %v", uid, err))
}
