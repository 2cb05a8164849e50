package resource

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/history"
)

// StreamsOf returns the streams that may hold the targets' objects in a namespace. It never returns nil, which would mean
// all streams.
func StreamsOf(targets []Target, namespace string) []int32 {
	ids := []int32{}
	for _, t := range targets {
		if t.Resource.Namespaced {
			ids = append(ids, t.Resource.StreamIDs(namespace)...)
		} else {
			ids = append(ids, t.Resource.StreamIDs("")...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// One returns the single object that the targets name, in a namespace.
func One(targets []Target, namespace string) (*Resource, history.Scope, error) {
	if len(targets) != 1 || len(targets[0].Names) != 1 {
		return nil, history.Scope{}, errors.New("name one object: TYPE/NAME")
	}
	r, scope := targets[0].Resource, history.Scope{Namespace: namespace, Name: targets[0].Names[0]}
	if !r.Namespaced {
		scope.Namespace = ""
	}
	scope.Streams = r.StreamIDs(scope.Namespace)
	return r, scope, nil
}

// NeverRecorded returns an error: the record never held the object.
func (r *Resource) NeverRecorded(scope history.Scope) error {
	where := ""
	if scope.Namespace != "" {
		where = " in namespace " + scope.Namespace
	}
	return fmt.Errorf("%s %q was never recorded%s", r, scope.Name, where)
}

// Confined returns a note with the namespaces to which the recording of a resource is limited; "" if they include the
// requested namespace.
func (r *Resource) Confined(namespace string) string {
	var scopes []string
	for _, s := range r.Streams {
		if s.Scope == "" || s.Scope == namespace {
			return ""
		}
		scopes = append(scopes, s.Scope)
	}
	if len(scopes) == 0 {
		return ""
	}
	return fmt.Sprintf("the recorder records %s only in these namespaces: %s", r, strings.Join(scopes, ", "))
}

// MaxNames is the maximum number of names that are looked up one by one. With more, all objects of the resource are read.
const MaxNames = 20

// ScopesOf combines targets to as few scopes as possible. The scopes may hold more objects than the targets; selector.Chosen
// selects the targets.
func ScopesOf(targets []Target, namespace string) []history.Scope {
	var scopes []history.Scope
	all := map[bool]*history.Scope{}
	for _, t := range targets {
		scope := history.Scope{Namespace: namespace, Streams: t.Resource.StreamIDs(namespace)}
		if !t.Resource.Namespaced {
			scope = history.Scope{Streams: t.Resource.StreamIDs("")}
		}
		switch {
		case len(scope.Streams) == 0:
		case len(t.Names) > 0 && len(t.Names) <= MaxNames:
			for _, name := range t.Names {
				scope.Name = name
				scopes = append(scopes, scope)
			}
		case all[t.Resource.Namespaced] == nil:
			all[t.Resource.Namespaced] = &scope
		default:
			known := all[t.Resource.Namespaced]
			known.Streams = append(known.Streams, scope.Streams...)
		}
	}
	for _, namespaced := range []bool{true, false} {
		if scope := all[namespaced]; scope != nil {
			slices.Sort(scope.Streams)
			scope.Streams = slices.Compact(scope.Streams)
			scopes = append(scopes, *scope)
		}
	}
	return scopes
}

// VersionOnly returns the version of "group/version".
func VersionOnly(version string) string {
	return version[strings.LastIndexByte(version, '/')+1:]
}
