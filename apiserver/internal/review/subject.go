package review

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// subject returns the judge of the request's question, and a context whose user is the subject of the question.
func (s *Server) subject(r *http.Request, target target) (context.Context, judge, error) {
	ctx := r.Context()
	caller, ok := request.UserFrom(ctx)
	if !ok {
		return nil, nil, apierrors.NewBadRequest("no user present on request")
	}
	subject, err := impersonated(r.Header)
	if err != nil {
		return nil, nil, err
	}
	if subject == nil && !target.named {
		return ctx, &present{authorize: s.options.Authorize}, nil
	}
	if subject != nil && target.named {
		return nil, nil, apierrors.NewForbidden(target.resource.GroupResource(), "",
			fmt.Errorf("a %s names its subject in spec: send it without Impersonate headers", target.kind))
	}
	if err := s.mayAsk(ctx, caller); err != nil {
		return nil, nil, err
	}
	if subject != nil {
		ctx = request.WithUser(ctx, subject)
	}
	return ctx, newPast(s.objects), nil
}

// mayAsk returns nil if the caller may list all resources from which the server answers questions about other subjects.
func (s *Server) mayAsk(ctx context.Context, caller user.Info) error {
	for _, resource := range rbacResources() {
		attributes := authorizer.AttributesRecord{User: caller, Verb: "list", ResourceRequest: true,
			APIGroup: rbacv1.GroupName, APIVersion: rbacv1.SchemeGroupVersion.Version, Resource: resource}
		if err := s.options.Authorize(ctx, attributes); err != nil {
			return err
		}
	}
	return nil
}

// denyAll is the Authorize of a server without one.
func denyAll(_ context.Context, a authorizer.Attributes) error {
	return apierrors.NewForbidden(rbacv1.Resource(a.GetResource()), a.GetName(), fmt.Errorf("no authorization is set up"))
}

// Impersonates reports whether the request has Impersonate headers. The caller must refuse such a request unless it is a
// review. If it ignored the headers, the client would get its own rights under another user's name.
func Impersonates(r *http.Request) bool {
	subject, err := impersonated(r.Header)
	return subject != nil || err != nil
}

// impersonated reads the Impersonate headers as a real server does. It returns nil if there are none.
func impersonated(header http.Header) (*user.DefaultInfo, error) {
	subject := &user.DefaultInfo{
		Name:   header.Get(authenticationv1.ImpersonateUserHeader),
		UID:    header.Get(authenticationv1.ImpersonateUIDHeader),
		Groups: slices.Clone(header[authenticationv1.ImpersonateGroupHeader]),
		Extra:  impersonatedExtra(header),
	}
	if subject.Name == "" {
		if subject.UID != "" || len(subject.Groups) > 0 || len(subject.Extra) > 0 {
			return nil, apierrors.NewBadRequest("Impersonate headers name a group, a UID or an extra value, and no user: add Impersonate-User")
		}
		return nil, nil
	}
	addGroups(subject)
	return subject, nil
}

func impersonatedExtra(header http.Header) map[string][]string {
	extra := map[string][]string{}
	for name, values := range header {
		encoded, ok := strings.CutPrefix(name, authenticationv1.ImpersonateUserExtraHeaderPrefix)
		if !ok {
			continue
		}
		key := strings.ToLower(encoded)
		if decoded, err := url.PathUnescape(key); err == nil {
			key = decoded
		}
		extra[key] = append(extra[key], values...)
	}
	return extra
}

// addGroups adds the same groups as a real server.
func addGroups(subject *user.DefaultInfo) {
	if len(subject.Groups) == 0 {
		subject.Groups = ownGroups(subject.Name)
	}
	switch {
	case subject.Name == user.Anonymous:
		addGroup(subject, user.AllUnauthenticated)
	case !slices.Contains(subject.Groups, user.AllUnauthenticated):
		addGroup(subject, user.AllAuthenticated)
	}
}

func addGroup(subject *user.DefaultInfo, group string) {
	if !slices.Contains(subject.Groups, group) {
		subject.Groups = append(subject.Groups, group)
	}
}

// ownGroups returns the groups that follow from the name of a service account or a node.
func ownGroups(name string) []string {
	if namespace, _, err := serviceaccount.SplitUsername(name); err == nil {
		return serviceaccount.MakeGroupNames(namespace)
	}
	if node, ok := strings.CutPrefix(name, "system:node:"); ok && len(validation.NameIsDNSSubdomain(node, false)) == 0 {
		return []string{user.NodesGroup}
	}
	return nil
}
