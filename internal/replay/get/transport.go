package get

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/printers"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/known"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/selector"
	"github.com/kuberewind/kuberewind/internal/replay/view"
	"github.com/kuberewind/kuberewind/internal/selection"
)

// transport answers the API requests of kubectl get from a view.
type transport struct {
	ctx   context.Context // the command's: kubectl's requests have none
	view  *view.View
	index []selector.Index
	// whole is true if objects are printed whole. Then the transport skips unreadable objects, and unwritten holds the
	// reasons.
	whole     bool
	unwritten error
	// failed is the reason why a request got no answer. It replaces kubectl's own message, which does not help.
	failed error
	// goneNoted is true if an error said that the object was deleted.
	goneNoted bool
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Body != nil {
		_ = request.Body.Close()
	}
	if request.URL.Path == "/api" || request.URL.Path == "/apis" {
		return t.view.Catalog.RoundTrip(request)
	}
	body, err := t.answer(request)
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return resource.Respond(request, http.StatusOK, "application/json", body), nil
	case errors.As(err, &status):
		s := status.Status()
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
		if body, err = json.Marshal(s); err != nil {
			return nil, err
		}
		return resource.Respond(request, int(s.Code), "application/json", body), nil
	}
	t.failed = errors.Join(t.failed, err)
	return nil, err
}

// An apiRequest is the request of an API URL.
type apiRequest struct {
	resource  *resource.Resource
	namespace string
	name      string
}

func (t *transport) parse(path string) (apiRequest, error) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return apiRequest{}, fmt.Errorf("the record cannot answer %s", path)
	}
	var r apiRequest
	if len(parts) >= 3 && parts[0] == "namespaces" {
		r.namespace, parts = parts[1], parts[2:]
	}
	if len(parts) == 2 {
		r.name = parts[1]
	}
	r.resource = t.view.Catalog.Find(schema.GroupResource{Group: group, Resource: parts[0]})
	if r.resource == nil || len(parts) > 2 {
		return r, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Group: group, Resource: parts[0]}, r.name, "", 0, true)
	}
	return r, nil
}

func (t *transport) answer(request *http.Request) ([]byte, error) {
	if name, ok := strings.CutPrefix(request.URL.Path, "/api/v1/namespaces/"); ok && !strings.Contains(name, "/") && t.view.Objects.Resource(view.NamespacesResource).Len() == 0 {
		return t.namespace(name)
	}
	r, err := t.parse(request.URL.Path)
	if err != nil {
		return nil, err
	}
	objects, err := t.objects(r, request.URL.Query().Get("labelSelector"), request.URL.Query().Get("fieldSelector"))
	if err != nil {
		return nil, err
	}
	if strings.Contains(request.Header.Get("Accept"), "as=Table") {
		include := metav1.IncludeMetadata
		if request.URL.Query().Get("includeObject") == string(metav1.IncludeObject) {
			include = metav1.IncludeObject
		}
		return t.table(r, objects, include)
	}
	if r.name != "" {
		for key, doc := range objects {
			if err := t.check(r.resource, key, doc); err != nil {
				return nil, apierrors.NewInternalError(err)
			}
			return doc, nil
		}
	}
	return t.list(r, objects)
}

// namespace answers kubectl's request for the namespace of an object that it did not find. If the record holds no
// namespaces, the answer is that it existed. If an error already said that the object was deleted, the answer is the same,
// because kubectl would report a missing namespace instead.
func (t *transport) namespace(name string) ([]byte, error) {
	r := t.view.Catalog.Find(view.NamespacesResource)
	if r == nil || t.goneNoted {
		return json.Marshal(map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}})
	}
	doc, err := t.view.Single(t.ctx, view.NamespacesResource, name)
	if err == nil && doc == nil {
		err = t.gone(apiRequest{resource: r, name: name}, apierrors.NewNotFound(view.NamespacesResource, name))
	}
	return doc, err
}

// objects returns the requested objects, by key.
func (t *transport) objects(r apiRequest, label, field string) (iter.Seq2[string, []byte], error) {
	store := t.view.Objects.Resource(r.resource.GroupResource())
	if r.name != "" {
		key := r.name
		if r.namespace != "" {
			key = r.namespace + "/" + r.name
		}
		doc, ok := store.Doc(key)
		if !ok {
			return nil, t.gone(r, t.view.Missing(r.resource, key, r.name))
		}
		return func(yield func(string, []byte) bool) { yield(key, doc) }, nil
	}
	kind := schema.GroupVersionKind{Group: r.resource.Group, Version: r.resource.Version, Kind: r.resource.Kind}
	s, err := selection.New(label, field, kind, func() ([]byte, error) { return t.view.Definition(t.ctx, r.resource.GroupResource()) })
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	indexed, err := t.indexed(store)
	if err != nil {
		return nil, err
	}
	return func(yield func(string, []byte) bool) {
		var seen known.Labels
		for key, doc := range store.All() {
			if r.namespace != "" && !strings.HasPrefix(key, r.namespace+"/") || indexed != nil && !indexed[key] || !seen.Matches(s, doc) {
				continue
			}
			if !yield(key, doc) {
				return
			}
		}
		for _, text := range seen.Unknown(s) {
			t.view.Env.Note(text)
		}
	}, nil
}

func (t *transport) table(r apiRequest, objects iter.Seq2[string, []byte], include metav1.IncludeObjectPolicy) ([]byte, error) {
	var failed error
	definitions := map[schema.GroupResource][]byte{}
	tables := printers.New(t.view.Point.Time, func(resource schema.GroupResource) []byte {
		doc, ok := definitions[resource]
		if !ok {
			var err error
			doc, err = t.view.Definition(t.ctx, resource)
			failed = errors.Join(failed, err)
			definitions[resource] = doc
		}
		return doc
	})
	table, err := tables.Make(r.resource.GroupResource(), objects, include)
	if err = errors.Join(err, failed, t.ctx.Err()); err != nil {
		return nil, err
	}
	harmless(table)
	return json.Marshal(table)
}

func (t *transport) list(r apiRequest, objects iter.Seq2[string, []byte]) ([]byte, error) {
	gv := schema.GroupVersion{Group: r.resource.Group, Version: r.resource.Version}
	list := struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []json.RawMessage `json:"items"`
	}{TypeMeta: metav1.TypeMeta{APIVersion: gv.String(), Kind: r.resource.Kind + "List"}, Items: []json.RawMessage{}}
	for key, doc := range objects {
		if err := t.check(r.resource, key, doc); err != nil {
			t.unwritten = errors.Join(t.unwritten, fmt.Errorf("skipped: %w", err))
			continue
		}
		list.Items = append(list.Items, doc)
	}
	return json.Marshal(list)
}

// check prints a note if kubectl's code would replace parts of an object. It returns an error if kubectl's code would lose a
// value, or would reject the object and all others.
func (t *transport) check(r *resource.Resource, key string, doc []byte) error {
	if !t.whole {
		return nil
	}
	name := r.GroupResource().String() + " " + key
	replaced, err := render.Check(doc)
	if err != nil {
		return fmt.Errorf("%s: %w; use snapshot --format json to write it", render.Line(name), err)
	}
	t.view.Env.Note(output.ReplacedNote(name, replaced, true))
	return nil
}
