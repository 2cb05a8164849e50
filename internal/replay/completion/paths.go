package completion

import (
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

// Limits of the objects whose paths are offered: objects of each type, and types if the line names none.
const (
	objectsOfType = 3
	typesAtOnce   = 8
)

// paths completes a path by one step, from the current state of the named objects, or of the newest objects of the named
// types.
func (r *reading) paths(typed string) (offer, error) {
	scopes, err := r.examples()
	if err != nil {
		return offer{}, err
	}
	point, err := r.rec.Resolve(r.ctx, history.Now(), history.Scope{Streams: []int32{}})
	if err != nil {
		return offer{}, err
	}
	var all []string
	for _, scope := range scopes {
		_, err := r.rec.Rebuild(r.ctx, point, scope, history.RebuildOptions{Damaged: func(*history.DamagedError) {}}, func(o history.Object) error {
			all = append(all, field.Paths(o.Doc)...)
			return nil
		})
		if err != nil {
			return offer{}, err
		}
	}
	return steps(all, typed), nil
}

// examples returns the scopes of these objects.
func (r *reading) examples() ([]history.Scope, error) {
	targets, namespace, err := r.targets()
	if err != nil {
		return nil, err
	}
	if named(targets) {
		return resource.ScopesOf(targets, namespace), nil
	}
	streams, each := resource.StreamsOf(targets, namespace), objectsOfType
	if len(targets) == 0 {
		if streams, err = r.busiest(namespace); err != nil {
			return nil, err
		}
		each = 1
	}
	var scopes []history.Scope
	for _, stream := range streams {
		found, err := known.Newest(r.ctx, r.rec.Record, stream, namespace, each)
		if err != nil {
			return nil, err
		}
		for _, o := range found {
			scopes = append(scopes, history.Scope{Streams: []int32{stream}, Namespace: o.Namespace, Name: o.Name})
		}
	}
	return scopes, nil
}

// busiest returns the streams with the newest deltas.
func (r *reading) busiest(namespace string) ([]int32, error) {
	streams, err := r.rec.Streams(r.ctx)
	if err != nil {
		return nil, err
	}
	streams = slices.DeleteFunc(streams, func(s history.Stream) bool { return s.LastSeq == 0 || namespace != "" && !s.Namespaced })
	slices.SortFunc(streams, func(a, b history.Stream) int { return int(b.LastSeq - a.LastSeq) })
	var ids []int32
	for _, s := range streams[:min(len(streams), typesAtOnce)] {
		ids = append(ids, s.ID)
	}
	return ids, nil
}

// steps returns the next steps of the paths that begin with the typed text. If a step is not the last of its path, the word
// stays open.
func steps(paths []string, typed string) (found offer) {
	for _, path := range paths {
		if !strings.HasPrefix(path, typed) || path == typed {
			continue
		}
		end := stepEnd(path, len(typed))
		found.words = append(found.words, path[:end])
		found.open = found.open || end < len(path)
	}
	slices.Sort(found.words)
	found.words = harmless(slices.Compact(found.words), "")
	return found
}

// stepEnd returns the end of the step of a path at a position: the next dot or bracket outside of brackets.
func stepEnd(path string, at int) int {
	within := strings.LastIndexByte(path[:at], '[') > strings.LastIndexByte(path[:at], ']')
	for i := at; i < len(path); i++ {
		switch {
		case path[i] == ']':
			within = false
		case within:
		case i > at && (path[i] == '.' || path[i] == '['):
			return i
		}
		if path[i] == '[' {
			within = true
		}
	}
	return len(path)
}
