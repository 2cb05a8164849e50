package describe

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/view"
)

// transport passes kubectl's requests to the API of the past.
type transport struct {
	ctx       context.Context // the command's: kubectl's requests have none
	handler   http.Handler
	root      string // path of the instant's API
	view      *view.View
	targets   []resource.Target
	goneNoted bool // an error said that the object was deleted
}

var requests = request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	asked, err := requests.NewRequestInfo(r)
	if err != nil {
		return nil, err
	}
	a := &answer{code: http.StatusOK, header: http.Header{}}
	if t.assumed(asked) {
		err = json.NewEncoder(&a.body).Encode(metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: asked.Name},
		})
	} else if err = a.take(t.handler, t.inner(r)); err == nil {
		err = t.finish(asked, a)
	}
	if err = errors.Join(context.Cause(t.ctx), err); err != nil {
		return nil, err
	}
	response := resource.Respond(r, a.code, a.header.Get("Content-Type"), a.body.Bytes())
	response.Header = a.header
	return response, nil
}

// inner returns the request in the form that the handler takes.
func (t *transport) inner(r *http.Request) *http.Request {
	inner := r.Clone(t.ctx)
	inner.URL.Path, inner.URL.RawPath, inner.Body = t.root+r.URL.Path, "", http.NoBody
	return inner
}

// assumed reports whether the transport answers that a namespace exists. kubectl asks for the namespace of an object that it
// did not find. If the record holds no namespaces, the transport says that it existed. If an error already said that the
// object was deleted, kubectl must not report a missing namespace instead.
func (t *transport) assumed(asked *request.RequestInfo) bool {
	return asked.Resource == view.NamespacesResource.Resource && asked.APIGroup == "" && asked.Name != "" && !t.target(asked) &&
		(t.goneNoted || t.view.Catalog.Find(view.NamespacesResource) == nil)
}

// target reports whether the arguments name the requested object.
func (t *transport) target(asked *request.RequestInfo) bool {
	for _, target := range t.targets {
		if target.Resource.GroupResource() != groupResource(asked) {
			continue
		}
		for _, name := range target.Names {
			if name == asked.Name {
				return true
			}
		}
	}
	return false
}

func groupResource(asked *request.RequestInfo) schema.GroupResource {
	return schema.GroupResource{Group: asked.APIGroup, Resource: asked.Resource}
}

// finish moves times for ages, and prints the notes that kubectl does not print.
func (t *transport) finish(asked *request.RequestInfo, a *answer) error {
	list := asked.Name == ""
	switch {
	case a.code == http.StatusOK:
		body, err := withAges(question{groupResource(asked), list}, a.body.Bytes(), t.view.Point.Time, time.Now())
		if err != nil {
			return err
		}
		a.body = *bytes.NewBuffer(body)
		t.noteHashes(asked, body)
	case a.code == http.StatusNotFound && list:
		t.noteUnrecorded(a.body.Bytes())
	case a.code == http.StatusNotFound && (t.target(asked) || asked.Resource == view.NamespacesResource.Resource):
		return t.gone(asked, a)
	}
	return nil
}

// hashes is the beginning of the base64 of a hash. The base64 of "hmac-sha256:" has no padding, so it is a prefix.
var hashes = []byte(base64.StdEncoding.EncodeToString([]byte("hmac-sha256:")))

func (t *transport) noteHashes(asked *request.RequestInfo, body []byte) {
	if groupResource(asked) == (schema.GroupResource{Resource: "secrets"}) && asked.Name != "" && bytes.Contains(body, hashes) {
		t.view.Env.Note("the record holds hashes instead of the values of Secrets: the printed sizes are the sizes of the hashes")
	}
}

// noteUnrecorded prints a note that a list is not on record. kubectl prints nothing, or <none>.
func (t *transport) noteUnrecorded(body []byte) {
	var status metav1.Status
	if json.Unmarshal(body, &status) == nil && status.Details != nil && status.Details.Kind != "" {
		t.view.Env.Note(status.Message)
	}
}

// gone adds to the answer when and by which delta the object was deleted.
func (t *transport) gone(asked *request.RequestInfo, a *answer) error {
	found := t.view.Catalog.Find(groupResource(asked))
	var missing apierrors.StatusError
	if err := json.Unmarshal(a.body.Bytes(), &missing.ErrStatus); err != nil || found == nil {
		return err
	}
	namespace := asked.Namespace
	if !found.Namespaced {
		namespace = "" // the URL parser says that a Namespace is in itself
	}
	ended, err := t.view.Gone(t.ctx, found, namespace, asked.Name, &missing)
	if !errors.As(err, new(*apierrors.StatusError)) {
		return err
	}
	t.goneNoted = t.goneNoted || ended
	a.body.Reset()
	return json.NewEncoder(&a.body).Encode(missing.ErrStatus)
}

// An answer collects the response of a handler.
type answer struct {
	code   int
	header http.Header
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(code int)        { a.code = code }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }

// take calls a handler. If the handler fails after it began to write, it aborts the connection with a panic.
func (a *answer) take(handler http.Handler, r *http.Request) (err error) {
	defer func() {
		if aborted := recover(); aborted != nil {
			if aborted != http.ErrAbortHandler { //nolint:errorlint // The value itself is compared.
				panic(aborted)
			}
			err = fmt.Errorf("the answer to %s was cut off: run the command again", r.URL.Path)
		}
	}()
	handler.ServeHTTP(a, r)
	return nil
}
