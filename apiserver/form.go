package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/patch"
)

// A form writes objects in one format. The form of a watch may keep state between events.
type form interface {
	// one returns the answer to a get, or the object of a watch event.
	one(ctx context.Context, e *state.Entry) ([]byte, error)
	// list writes the answer to a list.
	list(ctx context.Context, w io.Writer, meta metav1.ListMeta, entries iter.Seq[*state.Entry]) error
}

// jsonOnly is the only serialization: every standard client accepts JSON.
var jsonOnly = []runtime.SerializerInfo{{
	MediaType: wire.JSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true, StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true},
}}

// transforms allows the representations that a client can request.
type transforms struct{}

func (transforms) AllowsServerVersion(string) bool       { return false }
func (transforms) AllowsStreamSchema(schema string) bool { return schema == "watch" }
func (transforms) AllowsMediaTypeTransform(_, _ string, target *schema.GroupVersionKind) bool {
	if target == nil {
		return true
	}
	return target.Group == metav1.GroupName && slices.Contains([]string{"v1", "v1beta1"}, target.Version) &&
		slices.Contains([]string{"Table", "PartialObjectMetadata", "PartialObjectMetadataList"}, target.Kind)
}

// negotiate chooses the form by the Accept header. A client that accepts no form gets JSON.
func (c *call) negotiate(r *http.Request) (form, error) {
	whole := &wholeForm{call: c}
	options, ok := negotiation.NegotiateMediaTypeOptions(r.Header.Get("Accept"), jsonOnly, transforms{})
	if !ok || options.Convert == nil {
		return whole, nil
	}
	version := schema.GroupVersion{Group: options.Convert.Group, Version: options.Convert.Version}.String()
	if options.Convert.Kind != "Table" {
		return &metadataForm{version: version}, nil
	}
	include := metav1.IncludeObjectPolicy(cut(r.URL.Query().Get("includeObject")))
	if faults := validation.ValidateTableOptions(&metav1.TableOptions{IncludeObject: include}); len(faults) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: %v", faults.ToAggregate()))
	}
	if include == "" {
		include = metav1.IncludeMetadata
	}
	return &tableForm{call: c, whole: whole, version: version, include: include}, nil
}

// wholeForm writes objects as the API server sent them.
type wholeForm struct{ call *call }

func (f *wholeForm) one(_ context.Context, e *state.Entry) ([]byte, error) {
	return f.call.resource.convert(nil, e)
}

func (f *wholeForm) list(_ context.Context, w io.Writer, meta metav1.ListMeta, entries iter.Seq[*state.Entry]) error {
	r := f.call.resource
	head := listHead
	if !r.typed {
		head = customListHead
	}
	version := r.Kind.GroupVersion().String()
	begin, err := head(version, r.Kind.Kind+"List", meta)
	if err != nil {
		return err
	}
	return writeList(w, begin, "[]", entries, func(out []byte, e *state.Entry) ([]byte, error) {
		switch {
		case e.APIVersion != version:
			return r.converted(out, e)
		case r.typed:
			return append(out, e.Body...), nil // items of a typed list have no kind
		}
		return state.Whole(out, e.APIVersion, r.Kind.Kind, e.Body), nil
	})
}

// converted appends an item of a list in the requested version.
func (s *served) converted(out []byte, e *state.Entry) ([]byte, error) {
	text, err := s.convert(nil, e)
	if err == nil && s.typed {
		_, text = state.Split(text)
	}
	return append(out, text...), err
}

// writeList writes a list item by item. empty is the text of an empty list. item appends one item to a buffer.
func writeList(w io.Writer, begin []byte, empty string, entries iter.Seq[*state.Entry], item func([]byte, *state.Entry) ([]byte, error)) error {
	out, between, end := begin, byte('['), empty+"}\n"
	for e := range entries {
		var err error
		if out, err = item(append(out, between), e); err != nil {
			return err
		}
		if _, err := w.Write(out); err != nil {
			return err
		}
		out, between, end = out[:0], ',', "]}\n"
	}
	_, err := w.Write(append(out, end...))
	return err
}

// listHead returns the beginning of a list, up to its first item.
func listHead(version, kind string, meta metav1.ListMeta) ([]byte, error) {
	text, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":`, kind, version, text), nil
}

// customListHead is listHead for custom resources. The API server always writes their continue field, even if it is empty.
func customListHead(version, kind string, meta metav1.ListMeta) ([]byte, error) {
	if meta.Continue != "" {
		return listHead(version, kind, meta)
	}
	text, err := json.Marshal(struct {
		Continue string `json:"continue"`
		RV       string `json:"resourceVersion"`
	}{RV: meta.ResourceVersion})
	return fmt.Appendf(nil, `{"kind":%q,"apiVersion":%q,"metadata":%s,"items":`, kind, version, text), err
}

// metadataForm writes only the metadata of objects.
type metadataForm struct{ version string }

func (f *metadataForm) one(_ context.Context, e *state.Entry) ([]byte, error) {
	return f.append(nil, e), nil
}

func (f *metadataForm) append(out []byte, e *state.Entry) []byte {
	meta, ok := patch.Get(e.Body, "/metadata")
	if !ok {
		meta = patch.Doc("{}")
	}
	return fmt.Appendf(out, `{"kind":"PartialObjectMetadata","apiVersion":%q,"metadata":%s}`, f.version, []byte(meta))
}

func (f *metadataForm) list(_ context.Context, w io.Writer, meta metav1.ListMeta, entries iter.Seq[*state.Entry]) error {
	begin, err := listHead(f.version, "PartialObjectMetadataList", meta)
	if err != nil {
		return err
	}
	// The API server writes null for an empty list of metadata.
	return writeList(w, begin, "null", entries, func(out []byte, e *state.Entry) ([]byte, error) { return f.append(out, e), nil })
}
