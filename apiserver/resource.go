package apiserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/api/legacyscheme"

	"github.com/kuberewind/kuberewind/apiserver/internal/discovery"
	"github.com/kuberewind/kuberewind/apiserver/internal/state"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

// A served resource is one that the server had at the instant, in the requested version.
type served struct {
	discovery.Resource
	stored schema.GroupResource // the resource under which the record has its objects
	scope  history.Scope        // the streams of these objects
	typed  bool                 // the items of its lists have no kind
	names  []string             // namespaces to which the recorder was confined, by stream; nil for all

	granted bool // the read was allowed by permit.allow, or the server reads it for its own answer

	webhook func() bool // reports whether a webhook converts the versions; only the webhook could do that
}

// foreign are the groups whose types are compiled into API servers, but not into this program.
var foreign = map[string]bool{"apiextensions.k8s.io": true, "apiregistration.k8s.io": true}

func (at *instant) served(gvr schema.GroupVersionResource) (*served, bool) {
	r, ok := at.discovery.Resource(gvr)
	if !ok {
		return nil, false
	}
	s := &served{Resource: r, typed: legacyscheme.Scheme.Recognizes(r.Kind) || foreign[r.Kind.Group]}
	for _, stream := range at.recorded(gvr.GroupResource()) {
		s.stored = stream.GroupResource()
		s.scope.Streams = append(s.scope.Streams, stream.ID)
		if stream.Scope != "" {
			s.names = append(s.names, stream.Scope)
		}
	}
	return s, true
}

// unrecorded says why the record does not have a resource that the server had.
func (s *served) unrecorded() error {
	if s.Group == "metrics.k8s.io" {
		return s.absent("", "the record has no usage of Pods and Nodes; it has their requests, limits and allocatable resources (kubectl describe node)")
	}
	return s.absent("", fmt.Sprintf("%s were not recorded at this instant, although the server had them: the recorder had not listed them yet, or excludes them (\"replay coverage\" shows which)", s.GroupResource()))
}

// absent returns a 404 with a specific reason.
func (s *served) absent(name, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: message,
		Details: &metav1.StatusDetails{Name: name, Group: s.Group, Kind: s.GroupVersionResource.Resource},
	}}
}

// GroupResource returns the requested group and resource.
func (s *served) GroupResource() schema.GroupResource { return s.GroupVersionResource.GroupResource() }

// narrow selects the stream of a namespace if the recorder was confined to namespaces. Otherwise all streams remain.
func (s *served) narrow(namespace string) {
	if i := slices.Index(s.names, namespace); i >= 0 && len(s.names) == len(s.scope.Streams) {
		s.scope.Streams = s.scope.Streams[i : i+1]
	}
}

// followable refuses to continue from a resource version of several streams, because no resource version gives the position
// of each.
func (s *served) followable() error {
	if len(s.scope.Streams) < 2 {
		return nil
	}
	return apierrors.NewBadRequest(fmt.Sprintf("%s were recorded by namespace, and no resource version covers all namespaces: watch them in one namespace (%s), or list them without a resource version",
		s.GroupResource(), strings.Join(s.names, ", ")))
}

// position returns the resource version of a list at the instant. For several streams it is the oldest position.
func (at *instant) position(ctx context.Context, s *served) (oldest string, err error) {
	for _, stream := range s.scope.Streams {
		rv, known := at.positions[stream]
		if !known {
			if rv, err = at.cluster.record.StreamRV(ctx, at.point, stream); err != nil {
				return "", unavailable(err)
			}
		}
		if oldest == "" || delta.Precedes(rv, oldest) {
			oldest = rv
		}
	}
	return oldest, nil
}

// derivedFrom is the most deltas between a cached state and a new one that is derived from it. Beyond that, the new state
// is built from a checkpoint.
const derivedFrom = 20_000

// state returns a resource at the instant. If namespace is not "" and the state of all namespaces is not cached, it returns
// only the objects of that namespace.
func (at *instant) state(ctx context.Context, s *served, namespace string) (*state.State, error) {
	if !s.granted {
		return nil, errUndecided(s)
	}
	id := state.ID{Resource: s.stored, Seq: at.point.Seq, Version: at.revision}
	if whole := at.cluster.states.Kept(id); whole != nil {
		return whole, nil
	}
	id.Namespace = namespace
	scope := s.scope
	scope.Namespace = namespace
	record := at.cluster.record
	found, err := at.cluster.states.Get(ctx, id, func(ctx context.Context) (*state.State, error) {
		if earlier := at.cluster.states.Before(id); earlier != nil && id.Seq-earlier.Seq <= derivedFrom {
			versions := record.Versions(ctx, history.Query{Scope: scope, FromSeq: earlier.Seq + 1, ToSeq: id.Seq})
			if next, err := earlier.Advance(versions, id.Seq, prepare(s.stored)); err == nil {
				return next, nil
			}
		}
		return state.Build(ctx, record, at.point, scope, prepare(s.stored))
	})
	if err != nil {
		return nil, unresolved(err)
	}
	return found, nil
}

// stateAt returns a resource at an exact resource version.
func (at *instant) stateAt(ctx context.Context, s *served, namespace, rv string, p history.Point) (*state.State, error) {
	if !s.granted {
		return nil, errUndecided(s)
	}
	id := state.ID{Resource: s.stored, Namespace: namespace, Seq: p.Seq, RV: rv, Version: at.revision}
	scope := s.scope
	scope.Namespace = namespace
	found, err := at.cluster.states.Get(ctx, id, func(ctx context.Context) (*state.State, error) {
		return state.Build(ctx, at.cluster.record, p, scope, prepare(s.stored))
	})
	if err != nil {
		return nil, unresolved(err)
	}
	return found, nil
}

// object returns one object, nil if it does not exist. It rebuilds nothing else.
func (at *instant) object(ctx context.Context, s *served, namespace, name string) (*state.Entry, error) {
	if !s.granted {
		return nil, errUndecided(s)
	}
	id := state.ID{Resource: s.stored, Seq: at.point.Seq, Version: at.revision}
	if whole := at.cluster.states.Kept(id); whole != nil {
		return whole.Get(namespace, name), nil
	}
	scope := s.scope
	scope.Namespace, scope.Name = namespace, name
	one, err := state.Build(ctx, at.cluster.record, at.point, scope, prepare(s.stored))
	switch {
	case err != nil:
		return nil, unresolved(err)
	case len(one.Damaged) > 0:
		return nil, apierrors.NewInternalError(fmt.Errorf("the object cannot be rebuilt: %s", one.Damaged[0]))
	}
	return one.Get(namespace, name), nil
}

// hashed is the prefix of the recorder's hash of a value.
const hashed = "hmac-sha256:"

// prepare returns a change for objects that typed clients could not decode otherwise. It encodes the hash of a Secret's value,
// or of a ConfigMap's binary value, as base64, like the value itself.
func prepare(resource schema.GroupResource) state.Prepare {
	field := ""
	switch resource {
	case schema.GroupResource{Resource: "secrets"}:
		field = "/data"
	case schema.GroupResource{Resource: "configmaps"}:
		field = "/binaryData"
	default:
		return nil
	}
	return func(doc patch.Doc) (patch.Doc, error) { return encodeHashes(doc, field) }
}

func encodeHashes(doc patch.Doc, field string) (patch.Doc, error) {
	values, ok := patch.Get(doc, field)
	if !ok {
		return doc, nil
	}
	changed := false
	out := []byte{'{'}
	for key, value := range patch.Members(values) {
		if text, ok := patch.Unquote(value); ok && strings.HasPrefix(string(text), hashed) {
			value, changed = patch.Doc(`"`+base64.StdEncoding.EncodeToString(text)+`"`), true
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), key...), '"', ':'), value...)
	}
	if !changed {
		return doc, nil
	}
	return patch.Set(doc, field, append(out, '}'))
}
