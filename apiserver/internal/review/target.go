package review

import (
	"context"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	_ "k8s.io/kubernetes/pkg/apis/authentication/install" // adds its kinds to the scheme
	_ "k8s.io/kubernetes/pkg/apis/authorization/install"  // adds its kinds to the scheme
	"k8s.io/kubernetes/pkg/registry/authentication/selfsubjectreview"
	"k8s.io/kubernetes/pkg/registry/authorization/localsubjectaccessreview"
	"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectaccessreview"
	"k8s.io/kubernetes/pkg/registry/authorization/selfsubjectrulesreview"
	"k8s.io/kubernetes/pkg/registry/authorization/subjectaccessreview"
)

// storage is the part of a real API server that answers a review.
type storage interface {
	New() runtime.Object
	NamespaceScoped() bool
	Create(context.Context, runtime.Object, rest.ValidateObjectFunc, *metav1.CreateOptions) (runtime.Object, error)
}

// A target is the review that a request creates.
type target struct {
	resource  schema.GroupVersionResource
	namespace string
	kind      string
	named     bool // the body names the subject
	storage   func(judge) storage
}

// targetOf parses /apis/GROUP/VERSION/RESOURCE and /apis/GROUP/VERSION/namespaces/NAMESPACE/RESOURCE.
func targetOf(r *http.Request) (target, bool) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
	var namespace string
	if len(parts) == 6 && parts[3] == "namespaces" && parts[4] != "" {
		namespace = parts[4]
		parts = append(parts[:3], parts[5])
	}
	if r.Method != http.MethodPost || len(parts) != 4 || parts[0] != "apis" {
		return target{}, false
	}
	found, ok := reviewOf(schema.GroupResource{Group: parts[1], Resource: parts[3]})
	if !ok {
		return target{}, false
	}
	found.resource = schema.GroupVersionResource{Group: parts[1], Version: parts[2], Resource: parts[3]}
	found.namespace = namespace
	scoped := found.storage(nil).NamespaceScoped() == (namespace != "")
	return found, scoped && parts[2] != runtime.APIVersionInternal && legacyscheme.Scheme.Recognizes(found.gvk())
}

func (t target) gvk() schema.GroupVersionKind { return t.resource.GroupVersion().WithKind(t.kind) }

// into adds the values to the context that the storage reads: the namespace, and the version for the validation.
func (t target) into(ctx context.Context) context.Context {
	return request.WithRequestInfo(request.WithNamespace(ctx, t.namespace), &request.RequestInfo{
		IsResourceRequest: true, Verb: "create", Namespace: t.namespace,
		APIGroup: t.resource.Group, APIVersion: t.resource.Version, Resource: t.resource.Resource,
	})
}

func reviewOf(resource schema.GroupResource) (target, bool) {
	switch resource {
	case authorizationv1.Resource("selfsubjectaccessreviews"):
		return target{kind: "SelfSubjectAccessReview", storage: func(j judge) storage { return selfsubjectaccessreview.NewREST(j, legacyscheme.Scheme) }}, true
	case authorizationv1.Resource("selfsubjectrulesreviews"):
		return target{kind: "SelfSubjectRulesReview", storage: func(j judge) storage { return selfsubjectrulesreview.NewREST(j) }}, true
	case authorizationv1.Resource("subjectaccessreviews"):
		return target{kind: "SubjectAccessReview", named: true, storage: func(j judge) storage { return subjectaccessreview.NewREST(j, legacyscheme.Scheme) }}, true
	case authorizationv1.Resource("localsubjectaccessreviews"):
		return target{kind: "LocalSubjectAccessReview", named: true, storage: func(j judge) storage { return localsubjectaccessreview.NewREST(j, legacyscheme.Scheme) }}, true
	case authenticationv1.Resource("selfsubjectreviews"):
		return target{kind: "SelfSubjectReview", storage: func(judge) storage { return selfsubjectreview.NewREST() }}, true
	default:
		return target{}, false
	}
}
