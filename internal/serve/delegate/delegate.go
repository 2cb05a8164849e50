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

// A Mode says by whose rights the live API is asked.
type Mode string

// The modes.
const (
	Self   Mode = "live-self" // the caller's
	Server Mode = "live"      // the server's own
)

// Modes are all modes.
func Modes() []Mode { return []Mode{Self, Server} }

// Options say whom to ask.
type Options struct {
	Mode     Mode
	Clusters map[string]*rest.Config // of the live API of each cluster, by the cluster's UID
	Now      func() time.Time        // of the cache; nil means time.Now
}

// A Delegate authenticates and authorizes by live APIs. It is safe for concurrent use.
type Delegate struct {
	mode     Mode
	clusters map[string]reviewer
	kept     *kept
}

// A reviewer asks one live API. An error of it is an answer: Unauthorized, Forbidden, or ServiceUnavailable.
type reviewer interface {
	caller(ctx context.Context, c *credential) (user.Info, error)
	allowed(ctx context.Context, c *credential, subject user.Info, a authorizer.Attributes) (verdict, error)
}

// A verdict is a yes, or a no with its reason.
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
	return nil, fmt.Errorf("%q is no mode of authorization: there are %s and %s", mode, Self, Server)
}

// secure refuses an API to which a token must not go.
func secure(config *rest.Config) error {
	url, _, err := rest.DefaultServerUrlFor(config)
	switch {
	case err != nil:
		return err
	case url.Scheme != "https":
		return fmt.Errorf("%s is not https: tokens would go over the network as they are", url)
	case config.Insecure:
		return errors.New("insecure-skip-tls-verify is set: tokens would go to any server that takes this name")
	}
	return nil
}

// A caller is who sends a request, and the cluster whose live API knows them.
type caller struct {
	cluster    string
	credential *credential
}

type callerKey struct{}

// Certificates reports whether clients can show certificates.
func (d *Delegate) Certificates() bool { return d.mode == Server }

// Authenticate gives the request with its caller, without the token. An error of it is the answer.
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

// user is whose credential it is.
func (d *Delegate) user(ctx context.Context, uid string, c *credential) (user.Info, error) {
	found, err := remember(d.kept, d.kept.key(uid, c), func() (user.Info, error) { return d.clusters[uid].caller(ctx, c) })
	return found, about(uid, err)
}

func (d *Delegate) missing() string {
	if d.mode == Self {
		return "send the bearer token with which you use the live cluster: in this mode (" + string(Self) +
			") a client certificate cannot be checked; use a token, or ask for --authorization " + string(Server)
	}
	return "send the bearer token or the client certificate with which you use the live cluster"
}

// clusterParameter names the cluster where the path does not: for sessions.
const clusterParameter = "cluster"

// clusterOf finds the cluster that a URL names. One that names none is about the only one that there is.
func (d *Delegate) clusterOf(r *http.Request) (uid string, err error) {
	rest, ok := strings.CutPrefix(r.URL.Path, "/clusters/")
	uid, _, _ = strings.Cut(rest, "/")
	if !ok {
		uid = r.URL.Query().Get(clusterParameter)
	}
	if ok || uid != "" {
		if d.clusters[uid] == nil {
			return "", apierrors.NewForbidden(schema.GroupResource{}, "", fmt.Errorf(
				"cluster %.60q has no live API here, so nobody can tell who may read it: start replay serve with --live UID=KUBECONFIG", uid))
		}
		return uid, nil
	}
	if len(d.clusters) != 1 {
		return "", apierrors.NewUnauthorized("the URL names no cluster, and this server has several: a token goes only to the live API of its cluster; add ?cluster=UID")
	}
	for uid = range d.clusters {
	}
	return uid, nil
}

// Cluster is the UID of the cluster that knows the caller of a context, "" if none does.
func (d *Delegate) Cluster(ctx context.Context) string {
	if who, ok := ctx.Value(callerKey{}).(*caller); ok {
		return who.cluster
	}
	return ""
}

// Authorize returns nil if the live API says that the caller of the context may do in a cluster what the attributes say. An error that is
// Forbidden is a no. With any other nobody can tell.
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

// forbidden says no in the words of an API server.
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

// about makes a 503 of an error that is no answer.
func about(uid string, err error) error {
	if err == nil || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) {
		return err
	}
	return apierrors.NewServiceUnavailable(fmt.Sprintf("the live API of cluster %s cannot be asked who may read: %v", uid, err))
}
