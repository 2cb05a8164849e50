package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metainternal "k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metainternalscheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metainternalvalidation "k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kuberewind/kuberewind/apiserver/internal/review"
	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/selection"
	"github.com/kuberewind/kuberewind/patch"
)

// A call is one request for objects.
type call struct {
	at        *instant
	info      *request.RequestInfo
	resource  *served
	permit    *permit
	namespace string
	name      string // "" for a list or a watch
	form      form
	options   metainternal.ListOptions
	selects   selection.Selector
	all       bool      // no selector
	time      time.Time // the time for computing ages
}

var requestInfo = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// call parses a request. It returns nil if the path belongs to no API.
func (at *instant) call(r *http.Request) (*call, error) {
	info, err := requestInfo.NewRequestInfo(r)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if !info.IsResourceRequest {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			return nil, at.readOnly(schema.GroupResource{}, r.Method, "")
		}
		return nil, nil
	}
	s, ok := at.served(schema.GroupVersionResource{Group: info.APIGroup, Version: info.APIVersion, Resource: info.Resource})
	if !ok {
		return nil, nil
	}
	if text := review.Instead(info.Subresource); text != "" && info.Resource == "pods" {
		return nil, s.absent(info.Name, text)
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, at.refuse(r, s, info)
	}
	if info.Subresource != "" && (info.Verb != "get" || !slices.Contains(s.Subresources, info.Subresource)) || s.Namespaced != (info.Namespace != "") && (len(info.Parts) > 1 || info.Namespace != "") && info.Resource != "namespaces" {
		return nil, nil
	}
	if !s.Recorded {
		return nil, s.unrecorded()
	}
	s.webhook = sync.OnceValue(func() bool { return at.convertedByWebhook(r.Context(), s.GroupResource()) })
	c := &call{at: at, info: info, resource: s, namespace: info.Namespace, time: at.point.Time}
	if info.Resource == "namespaces" {
		c.namespace = ""
	}
	s.narrow(c.namespace)
	if len(info.Parts) > 1 {
		c.name = info.Parts[1]
	}
	if c.form, err = c.negotiate(r); err != nil {
		return nil, err
	}
	c.shift(r)
	if err := c.read(r.Context(), r.URL.Query(), info.Verb == "watch"); err != nil {
		return nil, err
	}
	c.permit = c.newPermit(r.Context())
	return c, nil
}

// checkTimeout refuses an invalid duration, as the API server does. For a watch, the API server and this server ignore the timeout.
func checkTimeout(r *http.Request) error {
	timeout := r.URL.Query().Get("timeout")
	if timeout == "" {
		return nil
	}
	_, err := time.ParseDuration(timeout)
	if err == nil {
		return nil
	}
	if info, infoErr := requestInfo.NewRequestInfo(r); infoErr == nil && info.Verb == "watch" {
		return nil
	}
	return apierrors.NewBadRequest("invalid timeout specified in the request URL - " + err.Error())
}

// read parses the options of a list or a watch, by the rules of the API server.
func (c *call) read(ctx context.Context, query url.Values, watches bool) error {
	if c.name != "" && !watches {
		return c.readVersion(query)
	}
	if err := metainternalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &c.options); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	c.options.Watch = c.options.Watch || watches
	metainternal.SetListOptionsDefaults(&c.options, true)
	if errs := metainternalvalidation.ValidateListOptions(&c.options, true); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
	}
	label, field := query.Get("labelSelector"), query.Get("fieldSelector")
	if c.name != "" {
		field = "metadata.name=" + c.name
		c.name = ""
	}
	c.all = label == "" && field == ""
	var err error
	c.selects, err = selection.New(label, field, c.resource.Kind, func() ([]byte, error) { return c.at.definition(ctx, c.resource.GroupResource()) })
	if err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	return nil
}

func (c *call) readVersion(query url.Values) error {
	var options metav1.GetOptions
	if err := metainternalscheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &options); err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	c.options.ResourceVersion = options.ResourceVersion
	return nil
}

// definition returns the CustomResourceDefinition of a resource at the instant, nil if there is none.
func (at *instant) definition(ctx context.Context, resource schema.GroupResource) ([]byte, error) {
	definitions, ok := at.served(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	if !ok || !definitions.Recorded {
		return nil, nil
	}
	definitions.granted = true // the server reads it for its own answer, and never sends it
	e, err := at.object(ctx, definitions, "", resource.String())
	if err != nil || e == nil {
		return nil, err
	}
	return e.Doc(definitions.Kind.Kind), nil
}

// convertedByWebhook reports whether a webhook converts the versions of a resource. If the definition cannot be read, it
// returns true: an object in a wrong version would be worse than none.
func (at *instant) convertedByWebhook(ctx context.Context, resource schema.GroupResource) bool {
	doc, err := at.definition(ctx, resource)
	strategy, _ := patch.Get(doc, "/spec/conversion/strategy")
	return err != nil || string(strategy) == `"Webhook"`
}

func (c *call) serve(w http.ResponseWriter, r *http.Request) error {
	if err := c.permit.allow(r.Context(), c.at.point.Seq); err != nil {
		return err
	}
	if rv := c.options.ResourceVersion; c.options.Watch || rv != "" && rv != "0" {
		if err := c.resource.followable(); err != nil {
			return err
		}
	}
	c.warn(w)
	if shifted, ok := c.form.(*shiftedForm); ok {
		w.Header().Set(ShiftedHeader, shifted.by().String())
	}
	switch {
	case c.options.Watch:
		return c.watch(w, r)
	case c.name != "":
		return c.get(w, r)
	}
	return c.list(w, r)
}

// mostWarnings bounds the headers of an answer.
const mostWarnings = 8

// warn adds a Warning header for each limitation of the answer.
func (c *call) warn(w http.ResponseWriter) {
	left := mostWarnings
	add := func(text string) {
		if left--; left >= 0 {
			wire.Warn(w, text)
		}
	}
	for _, n := range c.at.point.Notes {
		if n.Kind != history.NoteAfterEnd && n.Resource == c.resource.stored.Resource && n.Group == c.resource.stored.Group || n.Resource == "" && n.Kind == history.NoteEstimated {
			add(n.Text)
		}
	}
	if c.resource.names != nil {
		add(fmt.Sprintf("the record has only %s of namespace %s", c.resource.GroupResource(), strings.Join(c.resource.names, ", ")))
	}
}

func (c *call) get(w http.ResponseWriter, r *http.Request) error {
	if rv := c.options.ResourceVersion; rv != "" && rv != "0" {
		position, err := c.at.position(r.Context(), c.resource)
		if err != nil {
			return err
		}
		if err := c.reached(rv, position); err != nil {
			return err
		}
	}
	e, err := c.at.object(r.Context(), c.resource, c.namespace, c.name)
	if err != nil {
		return err
	}
	if e == nil {
		return apierrors.NewNotFound(c.resource.GroupResource(), c.name)
	}
	if c.info.Subresource == scaleName {
		scale := &scaled{at: c.at, resource: c.resource, name: c.name}
		if e, err = scale.entry(r.Context(), e); err != nil {
			return err
		}
		c.resource = scale.written() // The form writes this resource.
	}
	body, err := c.form.one(r.Context(), e)
	if err != nil {
		return err
	}
	wire.Body(w, http.StatusOK, body)
	return nil
}
