package split

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
)

var definitions = schema.GroupResource{Group: apiextensionsv1.GroupName, Resource: "customresourcedefinitions"}

// A definition was written. Discovery follows from it, on record as at the real server, and a client that names the resource reads it first.
type definition struct {
	*Proxy
	path  string                                   // of the definition
	known apiextensionsv1.CustomResourceDefinition // as the answer had it
}

// concerns reports whether a read is of discovery, or of the resource itself.
func (d *definition) concerns(path string) bool {
	group := "/apis/" + d.known.Spec.Group
	return path == "/apis" || path == "/api" || path == group || strings.HasPrefix(path, group+"/") || strings.HasPrefix(path, "/openapi/")
}

func (d *definition) String() string { return "discovery of " + d.known.Name }

// paid reports whether discovery of the past is that of the definition as it is now.
func (d *definition) paid(ctx context.Context, _ *history.Record, _ *history.End) (bool, error) {
	var now apiextensionsv1.CustomResourceDefinition
	there, err := d.real.get(ctx, d.path, &now)
	if err != nil {
		return false, err
	}
	established := condition(&now, apiextensionsv1.Established)
	if there && !established && !condition(&now, apiextensionsv1.Terminating) {
		return refused(&now), nil // The real server has not come to it, or never will.
	}
	for _, version := range d.known.Spec.Versions {
		served, err := d.serves(ctx, d.known.Spec.Group, version.Name, d.known.Spec.Names.Plural)
		if err != nil || served != (there && established && version.Served && now.UID == d.known.UID) {
			return false, err
		}
	}
	return true, nil
}

func condition(d *apiextensionsv1.CustomResourceDefinition, name apiextensionsv1.CustomResourceDefinitionConditionType) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == name {
			return c.Status == apiextensionsv1.ConditionTrue
		}
	}
	return false
}

// refused reports whether another definition has the names.
func refused(d *apiextensionsv1.CustomResourceDefinition) bool {
	for _, c := range d.Status.Conditions {
		if c.Type == apiextensionsv1.NamesAccepted {
			return c.Status == apiextensionsv1.ConditionFalse
		}
	}
	return false
}

// serves reports whether discovery of the past names a resource that can be read.
func (p *Proxy) serves(ctx context.Context, group, version, resource string) (bool, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, apiserver.LivePath(p.record.Cluster().UID)+"/apis/"+group+"/"+version, nil)
	if err != nil {
		return false, err
	}
	w := httptest.NewRecorder()
	p.past.ServeHTTP(w, r)
	if w.Code == http.StatusNotFound {
		return false, nil
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
		return false, fmt.Errorf("discovery of %s/%s: %w", group, version, err)
	}
	for i := range list.APIResources {
		if list.APIResources[i].Name == resource {
			return len(list.APIResources[i].Verbs) > 0, nil
		}
	}
	return false, nil
}
