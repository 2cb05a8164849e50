package review

import (
	"context"
	"errors"
	"strings"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"
)

const onlyRBAC = "only RBAC is on record; webhooks, the Node authorizer and the privileges of system:masters are not"

// past answers what a subject could do in the cluster at the instant, from the recorded RBAC objects.
type past struct {
	policy  *policy
	rbac    *rbac.RBACAuthorizer
	allowed bool
}

func newPast(objects Objects) *past {
	p := &policy{objects: objects}
	return &past{policy: p, rbac: rbac.New(p, p, p, p)}
}

func (p *past) failure() error { return p.policy.failed }

// warning is for a yes, because kubectl auth can-i prints the reason only for a no.
func (p *past) warning() string {
	if p.allowed {
		return onlyRBAC
	}
	return ""
}

// Authorize implements authorizer.UnconditionalAuthorizer.
func (p *past) Authorize(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	decision, reason, err := p.rbac.Authorize(ctx, a)
	p.allowed = decision == authorizer.DecisionAllow
	return decision, sentences(reason, onlyRBAC), p.incomplete("", err)
}

// RulesFor implements authorizer.RuleResolver. The list is always incomplete, because other authorizers may have had their
// own rules.
func (p *past) RulesFor(ctx context.Context, subject user.Info, namespace string) ([]authorizer.ResourceRuleInfo, []authorizer.NonResourceRuleInfo, bool, error) {
	resources, paths, _, err := p.rbac.RulesFor(ctx, subject, namespace)
	return resources, paths, true, p.incomplete(onlyRBAC, err)
}

// incomplete returns the evaluation error: what the answer does not cover.
func (p *past) incomplete(first string, err error) error {
	texts := append([]string{first}, p.policy.problems...)
	if err != nil {
		texts = append(texts, err.Error())
	}
	if text := sentences(texts...); text != "" {
		return errors.New(text)
	}
	return nil
}

// sentences joins texts that are not empty.
func sentences(texts ...string) string {
	var all []string
	for _, text := range texts {
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}
