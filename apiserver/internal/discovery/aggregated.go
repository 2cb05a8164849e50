package discovery

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/handlers/negotiation"

	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
)

// aggregatedKind is the kind that clients request to get all groups and resources in one answer.
var aggregatedKind = schema.GroupVersionKind{Group: "apidiscovery.k8s.io", Version: "v2", Kind: "APIGroupDiscoveryList"}

// aggregatedType is the content type of that answer. Clients compare it exactly.
const aggregatedType = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// aggregated is a discovery document with all groups below one root.
type aggregated struct {
	list *apidiscovery.APIGroupDiscoveryList
	body []byte
	etag string
}

func newAggregated(list *apidiscovery.APIGroupDiscoveryList) (*aggregated, error) {
	body, err := json.Marshal(list)
	return &aggregated{list: list, body: body, etag: strconv.Quote(hash(body))}, err
}

// hash computes a hash as the API server does for ETags and OpenAPI.
func hash(body []byte) string { return fmt.Sprintf("%X", sha512.Sum512(body)) }

// orElse answers with the document if the client requests aggregated discovery, else with legacy.
func (a *aggregated) orElse(legacy http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !wantsAggregated(r) {
			legacy(w, r)
			return
		}
		header := w.Header()
		header.Set("ETag", a.etag)
		header.Set("Vary", "Accept")
		header.Set("Cache-Control", "public")
		if r.Header.Get("If-None-Match") == a.etag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		header.Set("Content-Type", aggregatedType)
		header.Set("Content-Length", strconv.Itoa(len(a.body)))
		_, _ = w.Write(a.body) // The client may be gone.
	}
}

// wantsAggregated reports whether the Accept header requests aggregated discovery as JSON.
func wantsAggregated(r *http.Request) bool {
	accepted := []runtime.SerializerInfo{{MediaType: wire.JSON, MediaTypeType: "application", MediaTypeSubType: "json"}}
	options, ok := negotiation.NegotiateMediaTypeOptions(r.Header.Get("Accept"), accepted, onlyAggregated{})
	return ok && options.Convert != nil
}

// onlyAggregated implements negotiation.EndpointRestrictions: it accepts only aggregated discovery.
type onlyAggregated struct{}

func (onlyAggregated) AllowsMediaTypeTransform(_, _ string, kind *schema.GroupVersionKind) bool {
	return kind != nil && *kind == aggregatedKind
}
func (onlyAggregated) AllowsServerVersion(string) bool { return false }
func (onlyAggregated) AllowsStreamSchema(string) bool  { return false }
