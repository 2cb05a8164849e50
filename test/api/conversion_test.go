package api_test

import (
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kuberewind/kuberewind/internal/controlplane/objects"
)

//go:embed testdata/springs.yaml
var springs string

// makeSprings makes objects of a kind whose versions a webhook converts.
func makeSprings(t *testing.T, maker *objects.Maker) {
	t.Helper()
	webhook := httptest.NewTLSServer(http.HandlerFunc(convert))
	t.Cleanup(webhook.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: webhook.Certificate().Raw})
	maker.Apply([]byte(strings.NewReplacer("$URL", webhook.URL, "$CA", base64.StdEncoding.EncodeToString(authority)).Replace(springs)))
}

// convert names a member as the version that is asked for does: spec.size in v1, spec.length in v2.
func convert(w http.ResponseWriter, r *http.Request) {
	var review apiextensionsv1.ConversionReview
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	response := &apiextensionsv1.ConversionResponse{UID: review.Request.UID, Result: metav1.Status{Status: metav1.StatusSuccess}}
	for _, raw := range review.Request.Objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(raw.Raw); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		from, to := "size", "length"
		if strings.HasSuffix(review.Request.DesiredAPIVersion, "/v1") {
			from, to = to, from
		}
		if spec, _ := object.Object["spec"].(map[string]any); spec[from] != nil {
			spec[to] = spec[from]
			delete(spec, from)
		}
		object.SetAPIVersion(review.Request.DesiredAPIVersion)
		response.ConvertedObjects = append(response.ConvertedObjects, runtime.RawExtension{Object: object})
	}
	review.Request, review.Response = nil, response
	_ = json.NewEncoder(w).Encode(review) // The API server has gone if it fails.
}
