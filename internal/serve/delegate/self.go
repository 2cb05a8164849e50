package delegate

import (
	"context"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
)

const (
	// answersWithin is the timeout of a request to a live API.
	answersWithin = 5 * time.Second
	// perSecond bounds the requests to a live API, because any client can send unknown tokens.
	perSecond = 100
)

// bounded returns the configuration with the limits of this package.
func bounded(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Timeout, config.RateLimiter = answersWithin, flowcontrol.NewTokenBucketRateLimiter(perSecond, 2*perSecond)
	config.WarningHandler = rest.NoWarnings{}
	return config
}

// self asks with the caller's token.
type self struct {
	authentication *authenticationclient.AuthenticationV1Client
	authorization  *authorizationclient.AuthorizationV1Client
}

// newSelf uses the address and the TLS settings of the configuration, and no credential.
func newSelf(config *rest.Config) (*self, error) {
	config = bounded(rest.AnonymousClientConfig(config))
	authentication, err := authenticationclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	authorization, err := authorizationclient.NewForConfig(config)
	return &self{authentication: authentication, authorization: authorization}, err
}

func (s *self) caller(ctx context.Context, c *credential) (user.Info, error) {
	review := &authenticationv1.SelfSubjectReview{}
	err := ask(ctx, s.authentication.RESTClient(), c, "selfsubjectreviews", review, review)
	if apierrors.IsUnauthorized(err) {
		return nil, rejectedToken()
	}
	if err != nil {
		return nil, err
	}
	return userOf(&review.Status.UserInfo), nil
}

func (s *self) allowed(ctx context.Context, c *credential, _ user.Info, a authorizer.Attributes) (verdict, error) {
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: resource(a)}}
	err := ask(ctx, s.authorization.RESTClient(), c, "selfsubjectaccessreviews", review, review)
	if apierrors.IsUnauthorized(err) {
		return verdict{}, rejectedToken()
	}
	return verdict{allowed: review.Status.Allowed, reason: review.Status.Reason}, err
}

func rejectedToken() error {
	return apierrors.NewUnauthorized("the live cluster does not accept this token: it is wrong, it has expired, or its owner was deleted")
}

func ask(ctx context.Context, client rest.Interface, c *credential, reviews string, question, answer runtime.Object) error {
	return client.Post().Resource(reviews).SetHeader("Authorization", "Bearer "+c.token).Body(question).Do(ctx).Into(answer)
}

// resource returns the resource of the attributes.
func resource(a authorizer.Attributes) *authorizationv1.ResourceAttributes {
	return &authorizationv1.ResourceAttributes{
		Namespace: a.GetNamespace(), Verb: a.GetVerb(), Group: a.GetAPIGroup(), Version: a.GetAPIVersion(), Resource: a.GetResource(),
		Subresource: a.GetSubresource(), Name: a.GetName(),
	}
}

// spec returns the question as text.
func spec(a authorizer.Attributes) string { return fmt.Sprintf("%q", resource(a)) }

func userOf(info *authenticationv1.UserInfo) user.Info {
	extra := make(map[string][]string, len(info.Extra))
	for key, values := range info.Extra {
		extra[key] = values
	}
	return &user.DefaultInfo{Name: info.Username, UID: info.UID, Groups: info.Groups, Extra: extra}
}
