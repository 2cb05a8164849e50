package delegate

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	requestx509 "k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
)

// server asks with the server's own identity.
type server struct {
	authentication *authenticationclient.AuthenticationV1Client
	authorization  *authorizationclient.AuthorizationV1Client
	core           *coreclient.CoreV1Client
}

func newServer(config *rest.Config) (s *server, err error) {
	s, config = &server{}, bounded(config)
	if s.authentication, err = authenticationclient.NewForConfig(config); err != nil {
		return nil, err
	}
	if s.authorization, err = authorizationclient.NewForConfig(config); err != nil {
		return nil, err
	}
	s.core, err = coreclient.NewForConfig(config)
	return s, err
}

func (s *server) caller(ctx context.Context, c *credential) (user.Info, error) {
	if c.token == "" {
		return s.certified(ctx, c.chain)
	}
	review, err := s.authentication.TokenReviews().Create(ctx,
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: c.token}}, metav1.CreateOptions{})
	switch {
	case err != nil:
		return nil, refused("create tokenreviews", "ClusterRole system:auth-delegator", err)
	case !review.Status.Authenticated:
		return nil, rejectedToken()
	}
	return userOf(&review.Status.User), nil
}

// certified verifies a certificate as the API server does.
func (s *server) certified(ctx context.Context, chain []*x509.Certificate) (user.Info, error) {
	roots, err := s.roots(ctx)
	if err != nil {
		return nil, err
	}
	options := requestx509.DefaultVerifyOptions()
	options.Roots = roots
	shown := (&http.Request{TLS: &tls.ConnectionState{PeerCertificates: chain}}).WithContext(ctx)
	found, ok, err := requestx509.New(options, requestx509.CommonNameUserConversion).AuthenticateRequest(shown)
	if err != nil {
		return nil, apierrors.NewUnauthorized(err.Error())
	}
	if !ok {
		return nil, apierrors.NewUnauthorized("the client certificate names no user: its subject has no common name")
	}
	groups := append(slices.Clone(found.User.GetGroups()), user.AllAuthenticated)
	return &user.DefaultInfo{Name: found.User.GetName(), UID: found.User.GetUID(), Groups: groups, Extra: found.User.GetExtra()}, nil
}

// The ConfigMap in which an API server publishes the CA of client certificates.
const (
	caNamespace = "kube-system"
	caMap       = "extension-apiserver-authentication"
	caKey       = "client-ca-file"
)

// roots returns the CAs whose client certificates the cluster accepts.
func (s *server) roots(ctx context.Context) (*x509.CertPool, error) {
	found, err := s.core.ConfigMaps(caNamespace).Get(ctx, caMap, metav1.GetOptions{})
	if err != nil {
		return nil, refused("read configmap "+caMap+" of namespace "+caNamespace, "Role extension-apiserver-authentication-reader", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM([]byte(found.Data[caKey])) {
		return nil, apierrors.NewUnauthorized("the live cluster accepts no client certificates: send a token")
	}
	return roots, nil
}

func (s *server) allowed(ctx context.Context, _ *credential, subject user.Info, a authorizer.Attributes) (verdict, error) {
	extra := make(map[string]authorizationv1.ExtraValue, len(subject.GetExtra()))
	for key, values := range subject.GetExtra() {
		extra[key] = values
	}
	review, err := s.authorization.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: resource(a), User: subject.GetName(), UID: subject.GetUID(), Groups: subject.GetGroups(), Extra: extra,
	}}, metav1.CreateOptions{})
	if err != nil {
		return verdict{}, refused("create subjectaccessreviews", "ClusterRole system:auth-delegator", err)
	}
	return verdict{allowed: review.Status.Allowed, reason: review.Status.Reason}, nil
}

// refused says which right the server's own identity does not have. The error has no Status, because the refusal does not
// concern the caller.
func refused(what, role string, err error) error {
	if apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) {
		return errors.New("the identity of the --live kubeconfig may not " + what + ": bind it to " + role + " (" + err.Error() + ")")
	}
	return errors.New(what + ": " + err.Error())
}
