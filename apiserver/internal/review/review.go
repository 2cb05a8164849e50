package review

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
)

// Options connect a Server to the API of the past.
type Options struct {
	// Authorize returns nil if the user of the attributes may do through this API what they describe. A Forbidden error
	// (k8s.io/apimachinery/pkg/api/errors) denies it, and its text is the reason. Any other error means that Authorize
	// cannot decide. Without Authorize, every request is denied.
	Authorize func(context.Context, authorizer.Attributes) error
	// Served reports whether the cluster's API server served a resource in a version at the instant. Without it, the server
	// handles reviews in all versions that Kubernetes has had.
	Served func(schema.GroupVersionResource) bool
}

// A judge answers the question of one request.
type judge interface {
	authorizer.UnconditionalAuthorizer
	authorizer.RuleResolver
	// failure returns why there is no answer.
	failure() error
	// warning returns a limitation that kubectl does not print from the answer itself.
	warning() string
}

// Server answers reviews as of one instant. It is safe for concurrent use.
type Server struct {
	objects Objects
	options Options
}

// New returns a server that answers from these objects.
func New(objects Objects, options Options) *Server {
	if options.Authorize == nil {
		options.Authorize = denyAll
	}
	return &Server{objects: objects, options: options}
}

// Handles reports whether the request creates one of the reviews. The path has no prefix: it begins with /apis.
func (s *Server) Handles(r *http.Request) bool {
	target, ok := targetOf(r)
	return ok && (s.options.Served == nil || s.options.Served(target.resource))
}

// ServeHTTP answers a request that Handles accepts, with 201 and the review. The caller is the user of the request's context.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	target, ok := targetOf(r)
	if !ok {
		wire.Unserved(w)
		return
	}
	answer, err := s.answer(w, r, target)
	if err != nil {
		wire.Error(w, err)
		return
	}
	wire.Value(w, http.StatusCreated, answer)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, target target) (runtime.Object, error) {
	ctx, judge, err := s.subject(r, target)
	if err != nil {
		return nil, err
	}
	storage := target.storage(judge)
	question, err := decode(w, r, target, storage.New())
	if err != nil {
		return nil, err
	}
	if err := inNamespace(question, target.namespace); err != nil {
		return nil, err
	}
	answer, err := storage.Create(target.into(ctx), question, nil, &metav1.CreateOptions{})
	if err == nil {
		err = judge.failure()
	}
	if err != nil {
		return nil, err
	}
	if warning := judge.warning(); warning != "" {
		wire.Warn(w, warning)
	}
	return legacyscheme.Scheme.ConvertToVersion(answer, target.resource.GroupVersion())
}

// inNamespace sets the object's namespace to that of the path, as the create handler of a real server does.
func inNamespace(object runtime.Object, namespace string) error {
	accessor, err := meta.Accessor(object)
	if err != nil {
		return err
	}
	rest.WipeObjectMetaSystemFields(accessor)
	return rest.EnsureObjectNamespaceMatchesRequestNamespace(namespace, accessor)
}
