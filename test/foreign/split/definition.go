package split

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
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

// met reports whether discovery of the past is that of the definition as it is now.
func (d *definition) met(ctx context.Context, _ *history.Record, _ *history.End) (bool, error) {
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
		served := there && established && version.Served && now.UID == d.known.UID
		if agreed, err := d.agrees(ctx, schema.GroupVersion{Group: d.known.Spec.Group, Version: version.Name}, served); err != nil || !agreed {
			return false, err
		}
	}
	return true, nil
}

// agrees compares discovery and OpenAPI v3 of the past with what is served now.
func (d *definition) agrees(ctx context.Context, version schema.GroupVersion, served bool) (bool, error) {
	var list metav1.APIResourceList
	if err := d.ask(ctx, "/apis/"+version.String(), &list); err != nil {
		return false, err
	}
	named := slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == d.known.Spec.Names.Plural && len(r.Verbs) > 0 })
	if named != served {
		return false, nil
	}
	var theirs, ours struct {
		Paths map[string]struct{ ServerRelativeURL string } // which has the hash of a document
	}
	if _, err := d.real.get(ctx, "/openapi/v3", &theirs); err != nil {
		return false, err
	}
	if err := d.ask(ctx, "/openapi/v3", &ours); err != nil {
		return false, err
	}
	path := "apis/" + version.String()
	_, published := theirs.Paths[path]
	return theirs.Paths[path] == ours.Paths[path] && (published || !served), nil
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

// ask reads what the past says on a path. If there is nothing, into stays as it is.
func (p *Proxy) ask(ctx context.Context, path string, into any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, apiserver.LivePath(p.record.Cluster().UID)+path, nil)
	if err != nil {
		return err
	}
	w := httptest.NewRecorder()
	p.past.ServeHTTP(w, r)
	switch w.Code {
	case http.StatusNotFound:
		return nil
	case http.StatusOK:
		return json.Unmarshal(w.Body.Bytes(), into)
	}
	return fmt.Errorf("the past says %d on %s: %s", w.Code, path, w.Body)
}
