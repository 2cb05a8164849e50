package split

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
)

// A Proxy is an http.Handler. It is safe for concurrent use.
type Proxy struct {
	real    *realServer
	past    http.Handler
	record  *history.Record
	writes  *httputil.ReverseProxy
	pending pending
}

// New makes a proxy in front of a real API server, whose administrator it asks as, and of the handler that serves its record.
func New(config *rest.Config, past http.Handler, record *history.Record) (*Proxy, error) {
	server, err := newRealServer(config)
	if err != nil {
		return nil, err
	}
	p := &Proxy{real: server, past: past, record: record}
	p.writes = &httputil.ReverseProxy{Rewrite: p.forward, Transport: server.anybody, ModifyResponse: p.answered, FlushInterval: -1}
	return p, nil
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if writes(r) {
		p.writes.ServeHTTP(w, r)
		return
	}
	if err := p.pending.await(r.Context(), p.record, r.URL.Path); err != nil {
		late(w, err)
		return
	}
	root := apiserver.LivePath(p.record.Cluster().UID)
	inner := r.Clone(r.Context())
	inner.URL.Path = root + inner.URL.Path
	if inner.URL.RawPath != "" {
		inner.URL.RawPath = root + inner.URL.RawPath
	}
	p.past.ServeHTTP(w, inner)
}

// late answers a read for which the record is too late. kubectl shows the message of a Status only.
func late(w http.ResponseWriter, err error) {
	status := apierrors.NewTimeoutError(fmt.Sprintf("the record lacks a write: %v", err), 0).Status()
	status.Kind, status.APIVersion = "Status", "v1"
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}

// writes reports whether a request writes. Some reads are a POST, such as access reviews.
func writes(r *http.Request) bool {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return false
	}
	return !strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/") && !strings.HasSuffix(r.URL.Path, "/selfsubjectreviews")
}

// forward makes the request that the real server gets. Its answer has to be readable here.
func (p *Proxy) forward(r *httputil.ProxyRequest) {
	r.SetURL(p.real.root)
	r.Out.Header.Del("Accept-Encoding")
	var accepted []string
	for kind := range strings.SplitSeq(strings.Join(r.In.Header.Values("Accept"), ","), ",") {
		if !strings.Contains(kind, "protobuf") && !strings.Contains(kind, "cbor") {
			accepted = append(accepted, strings.TrimSpace(kind))
		}
	}
	if accept := strings.Join(accepted, ","); accept != "" {
		r.Out.Header.Set("Accept", accept)
	} else {
		r.Out.Header.Set("Accept", "application/json")
	}
}

// answered notes what the record must show after a write. The client has no answer yet.
func (p *Proxy) answered(response *http.Response) error {
	if response.StatusCode >= http.StatusMultipleChoices || response.StatusCode < http.StatusOK {
		return nil
	}
	if response.Request.URL.Query().Get("dryRun") != "" {
		return nil
	}
	info, err := requests.NewRequestInfo(&http.Request{Method: response.Request.Method, URL: &url.URL{Path: response.Request.URL.Path}})
	if err != nil || !info.IsResourceRequest {
		return err
	}
	text, err := readAnswer(response)
	if err != nil || text == nil {
		return err
	}
	return p.note(response.Request.Context(), info, text)
}

// note finds what the record must show after an answer.
func (p *Proxy) note(ctx context.Context, info *request.RequestInfo, text []byte) error {
	a := &answer{}
	if err := json.Unmarshal(text, a); err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", info.Verb, info.Path, err)
	}
	expected, err := p.real.expected(ctx, info, a)
	if info.APIGroup == definitions.Group && info.Resource == definitions.Resource {
		d := &definition{Proxy: p}
		if json.Unmarshal(text, &d.known) == nil && d.known.Spec.Group != "" {
			d.path = path(info, "", d.known.Name)
			expected = append(expected, d)
		}
	}
	p.pending.add(expected)
	return err
}

var requests = &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
