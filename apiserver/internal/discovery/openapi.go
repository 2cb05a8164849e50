package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/munnerz/goautoneg"
	"k8s.io/kube-openapi/pkg/handler3"

	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
)

const (
	openAPIRoot = "/openapi/v3"
	private     = "no-cache, private" // for answers without a hash in their address
)

// openAPI serves the documents of OpenAPI v3 that an index names.
type openAPI struct {
	source Source
	at     time.Time
	index  []byte    // nil if it is not recorded
	seen   time.Time // when it was recorded
	names  map[string]handler3.OpenAPIV3DiscoveryGroupVersion
}

func newOpenAPI(ctx context.Context, source Source, at time.Time) (*openAPI, error) {
	o := &openAPI{source: source, at: at}
	d, found, err := source.Document(ctx, at, openAPIRoot)
	if err != nil || !found {
		return o, err
	}
	var index handler3.OpenAPIV3Discovery
	if err := json.Unmarshal(d.Content, &index); err != nil {
		return nil, fmt.Errorf("%s, as recorded at %s: %w", openAPIRoot, d.ObservedAt.Format(time.RFC3339), err)
	}
	for name, entry := range index.Paths {
		address, err := url.Parse(entry.ServerRelativeURL)
		if err != nil {
			return nil, fmt.Errorf("%s, address of %s in the index: %w", openAPIRoot, name, err)
		}
		// An extension API server may use another path. Clients keep a prefix only before openAPIRoot.
		address.Path = openAPIRoot + "/" + name
		index.Paths[name] = handler3.OpenAPIV3DiscoveryGroupVersion{ServerRelativeURL: address.RequestURI()}
	}
	o.names, o.seen = index.Paths, d.ObservedAt
	o.index, err = json.Marshal(index)
	return o, err
}

// route returns the handler of a path, or nil.
func (o *openAPI) route(path string) http.HandlerFunc {
	if path == "/openapi/v2" {
		return func(w http.ResponseWriter, _ *http.Request) {
			wire.Error(w, notOnRecord("OpenAPI v2 is not on record; request "+openAPIRoot))
		}
	}
	if path == openAPIRoot {
		return o.serveIndex
	}
	if name, ok := strings.CutPrefix(path, openAPIRoot+"/"); ok {
		return func(w http.ResponseWriter, r *http.Request) { o.serveNamed(w, r, name) }
	}
	return nil
}

func (o *openAPI) serveIndex(w http.ResponseWriter, r *http.Request) {
	if o.index == nil {
		wire.Error(w, notOnRecord("OpenAPI v3 is not on record at that instant"))
		return
	}
	header := w.Header()
	header.Set("Content-Type", wire.JSON)
	header.Set("Cache-Control", private)
	header.Set("ETag", strconv.Quote(hash(o.index)))
	http.ServeContent(w, r, "", o.seen, bytes.NewReader(o.index))
}

// serveNamed serves a document if the index has it.
func (o *openAPI) serveNamed(w http.ResponseWriter, r *http.Request, name string) {
	header := w.Header()
	header.Set("Cache-Control", private)
	if _, ok := o.names[name]; !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	header.Set("Vary", "Accept")
	form, ok := negotiate(r.Header.Get("Accept"))
	if !ok {
		w.WriteHeader(http.StatusNotAcceptable)
		return
	}
	d, found, err := o.source.Document(r.Context(), o.at, openAPIRoot+"/"+name)
	if err == nil && !found {
		err = notOnRecord("the OpenAPI document of " + name + " is not on record at that instant")
	}
	if err != nil {
		wire.Error(w, err)
		return
	}
	body, err := form.encode(d.Content)
	if err != nil {
		wire.Error(w, fmt.Errorf("encode %s: %w", d.Path, err))
		return
	}
	header.Set("Content-Type", "application/"+form.subtype)
	if redirected := withHash(w, r, hash(d.Content)); !redirected {
		http.ServeContent(w, r, "", d.ObservedAt, bytes.NewReader(body))
	}
}

// withHash writes the headers of a document with a hash. If the client requests another hash, withHash redirects it to the
// document's hash. A client caches an answer with a hash for a year. Therefore, withHash computes the hash from the
// document, as the server does: the hash in a recorded index may be ahead of the document.
func withHash(w http.ResponseWriter, r *http.Request, hash string) (redirected bool) {
	header := w.Header()
	header.Set("ETag", strconv.Quote(hash))
	asked := r.URL.Query().Get("hash")
	if asked == "" {
		return false
	}
	if asked != hash {
		// The redirect has only a query, because the client's address may have a prefix that was removed.
		header.Set("Location", "?hash="+hash)
		w.WriteHeader(http.StatusMovedPermanently)
		return true
	}
	header.Set("Cache-Control", "public, immutable")
	header.Set("Expires", time.Now().AddDate(1, 0, 0).UTC().Format(http.TimeFormat))
	return false
}

// A form is an encoding of OpenAPI documents.
type form struct {
	subtype string
	encode  func(json []byte) ([]byte, error)
}

// negotiate finds the first form that the client accepts, as kube-openapi does. The second name of protobuf is deprecated.
func negotiate(accept string) (form, bool) {
	if accept == "" {
		accept = "*/*"
	}
	asIs := func(json []byte) ([]byte, error) { return json, nil }
	const protobuf = "com.github.proto-openapi.spec.v3.v1.0+protobuf"
	forms := []struct {
		asked string
		form
	}{
		{"json", form{"json", asIs}},
		{protobuf, form{protobuf, handler3.ToV3ProtoBinary}},
		{"com.github.proto-openapi.spec.v3@v1.0+protobuf", form{protobuf, handler3.ToV3ProtoBinary}},
	}
	for _, clause := range goautoneg.ParseAccept(accept) {
		for _, f := range forms {
			if (clause.Type == "application" || clause.Type == "*") && (clause.SubType == f.asked || clause.SubType == "*") {
				return f.form, true
			}
		}
	}
	return form{}, false
}
