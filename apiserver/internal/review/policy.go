package review

import (
	"context"
	"errors"
	"fmt"
	"iter"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"
)

// Objects returns the objects of the instant.
type Objects interface {
	// Docs returns the objects of a resource as JSON, by their keys. If the resource was not recorded at the instant, the
	// error is, or wraps, ErrNotRecorded.
	Docs(ctx context.Context, resource schema.GroupResource) (iter.Seq2[string, []byte], error)
}

// ErrNotRecorded is returned if a resource was not recorded at the instant.
var ErrNotRecorded = errors.New("not on record at this instant")

const (
	roles               = "roles"
	roleBindings        = "rolebindings"
	clusterRoles        = "clusterroles"
	clusterRoleBindings = "clusterrolebindings"
)

// rbacResources are the resources that RBAC reads.
func rbacResources() []string {
	return []string{clusterRoleBindings, clusterRoles, roleBindings, roles}
}

// policy is the RBAC of the instant, for one request. It reads a resource on first use. Kubernetes' RBAC authorizer reads
// from it.
type policy struct {
	objects             Objects
	roles               table[rbacv1.Role]
	roleBindings        table[rbacv1.RoleBinding]
	clusterRoles        table[rbacv1.ClusterRole]
	clusterRoleBindings table[rbacv1.ClusterRoleBinding]
	problems            []string // missing objects
	damaged             bool     // an object could not be decoded
	failed              error    // why the record could not be read
}

func (p *policy) GetRole(ctx context.Context, namespace, name string) (*rbacv1.Role, error) {
	return get(load(ctx, p, &p.roles, roles), "role", types.NamespacedName{Namespace: namespace, Name: name})
}

func (p *policy) GetClusterRole(ctx context.Context, name string) (*rbacv1.ClusterRole, error) {
	return get(load(ctx, p, &p.clusterRoles, clusterRoles), "clusterrole", types.NamespacedName{Name: name})
}

func (p *policy) ListClusterRoleBindings(ctx context.Context) ([]*rbacv1.ClusterRoleBinding, error) {
	return load(ctx, p, &p.clusterRoleBindings, clusterRoleBindings).all, nil
}

func (p *policy) ListRoleBindings(ctx context.Context, namespace string) ([]*rbacv1.RoleBinding, error) {
	var found []*rbacv1.RoleBinding
	for _, binding := range load(ctx, p, &p.roleBindings, roleBindings).all {
		if binding.Namespace == namespace {
			found = append(found, binding)
		}
	}
	return found, nil
}

// table holds the objects of one resource.
type table[T any] struct {
	loaded bool
	all    []*T
	named  map[types.NamespacedName]*T
}

// get finds an object, or returns the error of Kubernetes' own listers.
func get[T any](t *table[T], singular string, name types.NamespacedName) (*T, error) {
	if object := t.named[name]; object != nil {
		return object, nil
	}
	return nil, apierrors.NewNotFound(rbacv1.Resource(singular), name.Name)
}

// load fills the table on first use. The policy's problems then name the missing objects.
func load[T any, P interface {
	*T
	metav1.Object
}](ctx context.Context, p *policy, t *table[T], resource string) *table[T] {
	if t.loaded {
		return t
	}
	t.loaded, t.named = true, map[types.NamespacedName]*T{}
	docs, err := p.objects.Docs(ctx, rbacv1.Resource(resource))
	if err != nil {
		p.missing(resource, err)
		return t
	}
	for key, doc := range docs {
		object := P(new(T))
		if err := json.Unmarshal(doc, object); err != nil {
			p.undecodable(resource, key, err)
			continue
		}
		t.all = append(t.all, (*T)(object))
		t.named[types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}] = (*T)(object)
	}
	return t
}

func (p *policy) missing(resource string, err error) {
	if errors.Is(err, ErrNotRecorded) {
		p.problems = append(p.problems, fmt.Sprintf("%s.%s: %v", resource, rbacv1.GroupName, ErrNotRecorded))
		return
	}
	if p.failed == nil {
		p.failed = fmt.Errorf("read %s of the instant: %w", resource, err)
	}
}

// undecodable notes the first object that could not be decoded. The record has such objects only after a manual change.
func (p *policy) undecodable(resource, key string, err error) {
	if !p.damaged {
		p.damaged = true
		p.problems = append(p.problems, fmt.Sprintf("some objects could not be decoded; the first is %s %q: %v", resource, key, err))
	}
}
