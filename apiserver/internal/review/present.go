package review

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/kuberewind/kuberewind/apiserver/internal/discovery"
)

const (
	reasonReadable    = "the past is readable through this server"
	reasonReadOnly    = "the past is read-only"
	reasonQuestion    = "a review is a question, not a change"
	reasonUnserved    = "this server does not serve this path"
	reasonSubresource = "this server does not serve this subresource: read the object itself"
)

// present answers what the caller may do through this server now.
type present struct {
	authorize func(context.Context, authorizer.Attributes) error
	failed    error
}

func (p *present) failure() error  { return p.failed }
func (p *present) warning() string { return "" }

// Authorize implements authorizer.UnconditionalAuthorizer.
func (p *present) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if reason := refused(a); reason != "" {
		return authorizer.DecisionDeny, reason, nil
	}
	if a.GetVerb() == "create" {
		return authorizer.DecisionAllow, reasonQuestion, nil
	}
	if no := p.ask(ctx, a); no != "" {
		return authorizer.DecisionDeny, no, nil
	}
	return authorizer.DecisionAllow, reasonReadable, nil
}

// refused returns why this server allows something to no user, "" if it may allow it.
func refused(a authorizer.Attributes) string {
	instead := Instead(a.GetSubresource())
	switch {
	case instead != "":
		return instead
	case !a.IsResourceRequest() && a.GetVerb() == "get" && !rbac.RulesAllow(a, pathRule()):
		return reasonUnserved
	case !rbac.RulesAllow(a, readRule(), reviewRule(), pathRule()):
		return reasonReadOnly
	case a.GetSubresource() != "" && (a.GetVerb() != "get" || !discovery.Readable(a.GetSubresource())):
		return reasonSubresource
	default:
		return ""
	}
}

// ask returns why the caller may not do something, "" if the caller may.
func (p *present) ask(ctx context.Context, a authorizer.Attributes) string {
	err := p.authorize(ctx, a)
	if err == nil {
		return ""
	}
	if !apierrors.IsForbidden(err) {
		p.failed = err
	}
	return err.Error()
}

// RulesFor implements authorizer.RuleResolver. If a user may read only some resources, the list is incomplete, because
// Authorize cannot list them.
func (p *present) RulesFor(ctx context.Context, caller user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	var verbs []string
	var incomplete error
	read, review, paths := readRule(), reviewRule(), pathRule()
	for _, verb := range read.Verbs {
		every := authorizer.AttributesRecord{User: caller, Verb: verb, Namespace: namespace, ResourceRequest: true,
			APIGroup: rbacv1.APIGroupAll, APIVersion: "*", Resource: rbacv1.ResourceAll}
		if no := p.ask(ctx, every); no != "" {
			incomplete = fmt.Errorf("the caller may not %s every resource, and this list has no single resources: ask about one (%s)", verb, no)
			continue
		}
		verbs = append(verbs, verb)
	}
	rules := []authorizer.ResourceRuleInfo{resourceRule(review)}
	if len(verbs) > 0 {
		read.Verbs = verbs
		rules = append(rules, resourceRule(read))
	}
	nonResource := []authorizer.NonResourceRuleInfo{&authorizer.DefaultNonResourceRuleInfo{Verbs: paths.Verbs, NonResourceURLs: paths.NonResourceURLs}}
	return rules, nonResource, incomplete != nil, incomplete
}

func resourceRule(r rbacv1.PolicyRule) authorizer.ResourceRuleInfo {
	return &authorizer.DefaultResourceRuleInfo{Verbs: r.Verbs, APIGroups: r.APIGroups, Resources: r.Resources}
}

func readRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get", "list", "watch"}, APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}}
}

// reviewRule covers the questions that all users may ask about themselves.
func reviewRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{authorizationv1.GroupName, authenticationv1.GroupName},
		Resources: []string{"selfsubjectaccessreviews", "selfsubjectrulesreviews", "selfsubjectreviews"}}
}

func pathRule() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, NonResourceURLs: []string{"/api", "/api/*", "/apis", "/apis/*", "/healthz", "/healthz/*",
		"/livez", "/livez/*", "/openapi", "/openapi/*", "/readyz", "/readyz/*", "/version", "/version/"}}
}

// Instead returns what to use instead of a Pod's subresource that no record can serve, "" for any other subresource.
func Instead(subresource string) string {
	switch strings.ToLower(subresource) {
	case "log":
		return "logs are not on record: see the Pod's Events, and its versions (replay log pod/NAME)"
	case "exec", "attach":
		return "a container of the past runs no command: see the Pod's versions (replay log pod/NAME)"
	case "portforward", "proxy":
		return "a Pod or Service of the past takes no connection: see its versions (replay log)"
	default:
		return ""
	}
}
