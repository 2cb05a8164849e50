package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ClusterUID is the UID of namespace kube-system, where the Set has no namespaces.
const ClusterUID types.UID = "8c9c9a36-1d7e-4f0c-9a51-bd9e4a0a5b11"

func write(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value) // who asked may have gone
}

func answer(value any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { write(w, http.StatusOK, value) }
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	}
	if len(causes) > 0 {
		status.Details = &metav1.StatusDetails{Causes: causes}
	}
	write(w, code, status)
}

// discovery serves what the Set has, group version by group version, and each resource.
func (s *Server) discovery(mux *http.ServeMux) {
	core := metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}}
	groups := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{}}
	lists := map[string]*metav1.APIResourceList{"v1": {TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1"}}
	for _, r := range s.state.resources {
		gv := r.APIVersion()
		if lists[gv] == nil {
			lists[gv] = &metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: gv}
			version := metav1.GroupVersionForDiscovery{GroupVersion: gv, Version: r.Version}
			if i := slices.IndexFunc(groups.Groups, func(g metav1.APIGroup) bool { return g.Name == r.Group }); i >= 0 {
				groups.Groups[i].Versions = append(groups.Groups[i].Versions, version)
			} else {
				groups.Groups = append(groups.Groups, metav1.APIGroup{Name: r.Group, Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version})
			}
		}
		lists[gv].APIResources = append(lists[gv].APIResources, metav1.APIResource{
			Name: r.Resource.Resource, Kind: r.Kind, Namespaced: r.Namespaced, Verbs: metav1.Verbs{"get", "list", "watch"},
		})
		root := "/apis/" + gv
		if r.Group == "" {
			root = "/api/" + gv
		}
		path := r.Resource.Resource
		mux.HandleFunc("GET "+root+"/"+path, func(w http.ResponseWriter, req *http.Request) { s.collection(w, req, r) })
		if r.Namespaced {
			mux.HandleFunc("GET "+root+"/namespaces/{namespace}/"+path, func(w http.ResponseWriter, req *http.Request) { s.collection(w, req, r) })
			path = "namespaces/{namespace}/" + path
		}
		mux.HandleFunc("GET "+root+"/"+path+"/{name}", func(w http.ResponseWriter, req *http.Request) { s.one(w, req, r) })
	}
	if !slices.ContainsFunc(s.state.resources, func(r *resource) bool { return r.Group == "" && r.Resource.Resource == "namespaces" }) {
		namespace := metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{Kind: "Namespace", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem, UID: ClusterUID, ResourceVersion: "1"},
		}
		mux.HandleFunc("GET /api/v1/namespaces/kube-system", answer(namespace))
	}
	mux.HandleFunc("GET /api", answer(core))
	mux.HandleFunc("GET /apis", answer(groups))
	for gv, list := range lists {
		root := "/apis/"
		if gv == "v1" {
			root = "/api/"
		}
		mux.HandleFunc(fmt.Sprintf("GET %s%s", root, gv), answer(list))
	}
}
