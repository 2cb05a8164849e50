// Package filter decides which objects are recorded.
//
// The recorder decides, not the server. If the server filtered by a selector, it would report an object as deleted
// when the object no longer matches, and the record would be false. The recorder decides when it first sees a life. A
// recorded life stays recorded, so a changed label never removes an object from the record. An excluded life is
// decided again only after the rules have changed.
package filter

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Filter is a set of include and exclude rules. The recorder records an object if no exclude rule matches it, and an
// include rule matches it or there are no include rules. The zero value records everything.
type Filter struct {
	include, exclude []rule
}

// rule is resource[.group][/namespace][?labels]. Resource, group and namespace are glob patterns of path.Match.
// Without a group the rule applies to every group; a trailing dot means the core group.
type rule struct {
	text      string
	resource  string
	group     string
	anyGroup  bool
	namespace string
	selector  labels.Selector
}

// New parses the rules. The error names every invalid rule.
func New(include, exclude []string) (*Filter, error) {
	f := &Filter{}
	var errs []error
	for _, set := range []struct {
		key   string
		texts []string
		into  *[]rule
	}{{"include", include, &f.include}, {"exclude", exclude, &f.exclude}} {
		for _, text := range set.texts {
			r, err := parseRule(text)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", set.key, err))
			}
			*set.into = append(*set.into, r)
		}
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return f, nil
}

func parseRule(text string) (rule, error) {
	r := rule{text: text, namespace: "*", selector: labels.Everything()}
	rest, selector, found := strings.Cut(text, "?")
	if found {
		parsed, err := labels.Parse(selector)
		if err != nil {
			return rule{}, fmt.Errorf("rule %q: label selector: %w", text, err)
		}
		r.selector = parsed
	}
	rest, namespace, found := strings.Cut(rest, "/")
	if found {
		r.namespace = namespace
	}
	resource, group, found := strings.Cut(rest, ".")
	r.resource, r.group, r.anyGroup = resource, group, !found
	if r.resource == "" || r.namespace == "" {
		return rule{}, fmt.Errorf("rule %q is not resource[.group][/namespace][?labels]; * matches any", text)
	}
	if strings.ContainsAny(rest+namespace, ", \t\n") {
		return rule{}, fmt.Errorf("rule %q: commas and white space are allowed only in a label selector. Give each rule its own flag; in a variable, separate rules by white space", text)
	}
	for _, pattern := range []string{r.resource, r.group, r.namespace} {
		if _, err := path.Match(pattern, ""); err != nil {
			return rule{}, fmt.Errorf("rule %q: pattern %q: %w", text, pattern, err)
		}
	}
	return r, nil
}

// matchResource reports whether the rule matches a resource. It ignores namespace and labels.
func (r rule) matchResource(gr schema.GroupResource) bool {
	return match(r.resource, gr.Resource) && (r.anyGroup || match(r.group, gr.Group))
}

// matchNamespace reports whether the rule matches a namespace. A cluster-scoped object has none, so only a rule for
// any namespace matches it.
func (r rule) matchNamespace(namespace string) bool {
	return r.namespace == "*" || namespace != "" && match(r.namespace, namespace)
}

func (r rule) whole() bool { return r.namespace == "*" && r.selector.Empty() }

// match reports whether a pattern matches a text. parseRule has checked the pattern, so path.Match returns no error.
func match(pattern, text string) bool {
	ok, _ := path.Match(pattern, text)
	return ok
}

// Resource reports whether any object of the resource can be recorded.
func (f *Filter) Resource(gr schema.GroupResource) bool {
	for _, r := range f.exclude {
		if r.whole() && r.matchResource(gr) {
			return false
		}
	}
	for _, r := range f.include {
		if r.matchResource(gr) {
			return true
		}
	}
	return len(f.include) == 0
}

// For returns the filter of one resource, with only its rules.
func (f *Filter) For(gr schema.GroupResource) Resource {
	out := Resource{all: len(f.include) == 0}
	for _, r := range f.include {
		if r.matchResource(gr) {
			out.all = out.all || r.whole()
			out.include = append(out.include, r)
		}
	}
	for _, r := range f.exclude {
		if r.matchResource(gr) {
			out.exclude = append(out.exclude, r)
		}
	}
	return out
}

// Resource is the filter of one resource.
type Resource struct {
	all              bool
	include, exclude []rule
}

// Everything reports whether each object passes.
func (r Resource) Everything() bool { return r.all && len(r.exclude) == 0 }

// ByLabel reports whether the decision depends on labels, which can change during a life.
func (r Resource) ByLabel() bool {
	for _, rules := range [][]rule{r.include, r.exclude} {
		for _, candidate := range rules {
			if !candidate.selector.Empty() {
				return true
			}
		}
	}
	return false
}

// Allows reports whether an object with this namespace and these labels passes.
func (r Resource) Allows(namespace string, set map[string]string) bool {
	for _, candidate := range r.exclude {
		if candidate.matchNamespace(namespace) && candidate.selector.Matches(labels.Set(set)) {
			return false
		}
	}
	if r.all {
		return true
	}
	for _, candidate := range r.include {
		if candidate.matchNamespace(namespace) && candidate.selector.Matches(labels.Set(set)) {
			return true
		}
	}
	return false
}

// String returns the filter in the form that is recorded. Equal texts mean equal decisions.
func (r Resource) String() string {
	var parts []string
	if !r.all {
		for _, candidate := range r.include {
			parts = append(parts, "+"+candidate.text)
		}
	}
	for _, candidate := range r.exclude {
		parts = append(parts, "-"+candidate.text)
	}
	return strings.Join(parts, " ")
}
