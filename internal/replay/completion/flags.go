package completion

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

// sources maps flags to the source of their values in the record.
var sources = map[string]source{
	"namespace": (*reading).namespaces,
	"manager":   (*reading).managers,
	"path":      (*reading).paths,
	"ignore":    (*reading).paths,
	"kind":      (*reading).types,
	"index":     (*reading).index,
}

// files are the flags that take the name of a file or directory.
var files = []string{"audit-log", "certificate-authority", "config", "data-dir", "intentions", "kubeconfig", "output", "redaction-key-file", "tls-cert", "tls-key"}

// outputs holds the values of -o. The values for get are kubectl's, and -o of snapshot is a file.
var outputs = map[string][]string{
	"log":      {"text", "wide", "json"},
	"diff":     {"text", "json", "name", "unified", "stat"},
	"coverage": {"text", "wide", "json"},
	"session":  {"text", "json"},
	"open":     {"text", "json"},
	"story":    {"text", "json"},
	"blame":    {"text", "json"},
	"verify":   {"text", "json"},
}

// valuesOf returns the values of a flag that takes only fixed values.
func valuesOf(command, flag string) ([]string, bool) {
	switch flag {
	case "output":
		values, ok := outputs[command]
		return values, ok
	case "color":
		return env.Colors, true
	case "authorization":
		return []string{"live", "live-self"}, true
	case "type":
		return delta.TypeWords(), true
	case "only":
		return []string{"spec", "status", "all"}, true
	case "format":
		return []string{"yaml", "list", "json", "files", "tar"}, true
	}
	return nil, false
}

// namespaces returns the recorded namespaces, and the namespaces to which the recording of a resource is limited.
func (r *reading) namespaces(typed string) (offer, error) {
	streams, err := r.rec.Streams(r.ctx)
	if err != nil {
		return offer{}, err
	}
	lives := r.lives
	lives.Prefix, lives.Streams = typed, []int32{}
	var scopes []string
	for _, s := range streams {
		if s.GroupResource() == (schema.GroupResource{Resource: "namespaces"}) {
			lives.Streams = append(lives.Streams, s.ID)
		}
		if s.Scope != "" && strings.HasPrefix(s.Scope, typed) {
			scopes = append(scopes, s.Scope)
		}
	}
	names, more, err := known.Names(r.ctx, r.rec.Record, lives)
	names = append(names, scopes...)
	slices.Sort(names)
	return offer{words: harmless(slices.Compact(names), forPatterns), more: more}, err
}

// managers returns the field managers of the objects that the arguments name. Without names, it returns the latest writers.
func (r *reading) managers(typed string) (offer, error) {
	targets, namespace, err := r.targets()
	if err != nil {
		return offer{}, err
	}
	var all []string
	if named(targets) {
		for _, scope := range resource.ScopesOf(targets, namespace) {
			found, err := known.ManagersOf(r.ctx, r.rec.Record, known.Object{Streams: scope.Streams, Namespace: scope.Namespace, Name: scope.Name})
			if err != nil {
				return offer{}, err
			}
			all = append(all, found...)
		}
	} else if all, err = known.Managers(r.ctx, r.rec.Record, r.lives.To); err != nil {
		return offer{}, err
	}
	slices.Sort(all)
	return offer{words: harmless(startingWith(slices.Compact(all), typed), forPatterns)}, nil
}

// indexWords are the names of indices, each with the = before its value.
var indexWords = []string{"label=", "namespace=", "node=", "owner=", "uid="}

// index completes the name of an index, and the values of two indices whose values are names.
func (r *reading) index(typed string) (offer, error) {
	name, value, ok := strings.Cut(typed, "=")
	if !ok {
		return offer{words: startingWith(indexWords, typed), open: true}, nil
	}
	var found offer
	var err error
	switch name {
	case "namespace":
		found, err = r.namespaces(value)
	case "node":
		found, err = r.namesOf("nodes", value)
	}
	for i, word := range found.words {
		found.words[i] = name + "=" + word
	}
	return found, err
}
