package resource

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/mistyped"
)

// An UnknownResourceError means that a word names no resource of the record.
type UnknownResourceError struct {
	Word string
	// Why is what the record knows about the word, if anything.
	Why string
	// Like holds similar names.
	Like []string
	// Served is the resource, if the server supported list and watch for it; otherwise it is empty.
	Served schema.GroupResource
}

// Error begins like kubectl's error.
func (e *UnknownResourceError) Error() string {
	text := fmt.Sprintf("the server doesn't have a resource type %q", e.Word)
	if e.Why != "" {
		text = e.Why
	}
	if len(e.Like) > 0 {
		text += "; did you mean " + strings.Join(e.Like, ", ") + "?"
	}
	return text
}

// cohabiting maps the second name of resources that have two names to the first, which the recorder follows.
var cohabiting = map[schema.GroupResource]schema.GroupResource{
	{Group: "events.k8s.io", Resource: "events"}:       {Resource: "events"},
	{Group: "extensions", Resource: "ingresses"}:       {Group: "networking.k8s.io", Resource: "ingresses"},
	{Group: "extensions", Resource: "networkpolicies"}: {Group: "networking.k8s.io", Resource: "networkpolicies"},
	{Group: "extensions", Resource: "deployments"}:     {Group: "apps", Resource: "deployments"},
	{Group: "extensions", Resource: "daemonsets"}:      {Group: "apps", Resource: "daemonsets"},
	{Group: "extensions", Resource: "replicasets"}:     {Group: "apps", Resource: "replicasets"},
}

func (c *Catalog) unknown(word string) error {
	e := &UnknownResourceError{Word: word}
	lower := strings.ToLower(word)
	_, gr := schema.ParseResourceArg(lower)
	full, _ := schema.ParseResourceArg(lower)
	for _, r := range c.unrecorded {
		served := schema.GroupResource{Group: r.Group, Resource: r.Resource}
		named := gr.Resource == r.Resource || gr.Resource == r.Singular || gr.Resource == strings.ToLower(r.Kind) || slices.Contains(r.ShortNames, gr.Resource)
		group := gr.Group == "" || strings.HasPrefix(r.Group, gr.Group) || full != nil && strings.HasPrefix(r.Group, full.Group)
		if !named || !group {
			continue
		}
		if kept, ok := cohabiting[served]; ok {
			e.Why, e.Like = fmt.Sprintf("%s are recorded under another name", served), []string{kept.String()}
			return e
		}
		if !slices.Contains(r.Verbs, "list") || !slices.Contains(r.Verbs, "watch") {
			e.Why = fmt.Sprintf("the server served %s, but does not support list and watch for them, so they cannot be recorded", served)
			return e
		}
		e.Why = fmt.Sprintf("the server served %s, but they are not in the record: the recorder's configuration excludes them, or the recorder may not list them (see replay coverage %s)", served, served)
		e.Served = served
		return e
	}
	e.Like = c.like(gr.Resource)
	return e
}

// like returns at most three resources whose names differ by a letter or two, the nearest first.
func (c *Catalog) like(word string) []string {
	type near struct {
		name     string
		distance int
	}
	var found []near
	for _, r := range c.Resources {
		best, like := len(word), false
		for _, name := range append([]string{r.Resource, r.Singular, strings.ToLower(r.Kind)}, r.ShortNames...) {
			if name == "" {
				continue
			}
			distance, slip := mistyped.Near(word, name)
			best, like = min(best, distance), like || slip
		}
		if like {
			found = append(found, near{r.String(), best})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, n := range found[:min(3, len(found))] {
		names = append(names, n.name)
	}
	return names
}
