package completion

import (
	"slices"
	"strings"

	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/field"
	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

// Objects whose paths are offered: so many of each type, and of so many types where none is named.
const (
	objectsOfType = 3
	typesAtOnce   = 8
)

// paths completes a path by one step, from objects as they are now: the named ones, or the newest of the named types.
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

// examples name the objects.
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

// busiest are the streams whose last delta is the newest.
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

// steps are the next steps of paths that begin as typed. A step that is not the last of its path leaves the word open.
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

// stepEnd is where the step ends that a path takes at a place: before the next dot or bracket that is not within brackets.
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
