package api_test

import (
	"strconv"
	"strings"
)

// now are the questions about a kind as it is.
func (e *exam) now(k kind, r revision) (pairs []pair) {
	for _, accept := range []string{asJSON, asMetadataList, asTable} {
		pairs = append(pairs, same(k, r, k.path(""), accept), same(k, r, k.path(""), accept, "limit=2"))
	}
	for _, include := range []string{"None", "Metadata", "Object", "Bad"} {
		pairs = append(pairs, same(k, r, k.path(""), asTable, "includeObject="+include))
	}
	for _, selector := range labelSelectors {
		pairs = append(pairs, same(k, r, k.path(""), asJSON, "labelSelector="+selector))
	}
	for _, selector := range k.fieldSelectors() {
		pairs = append(pairs, same(k, r, k.path(""), asMetadataList, "fieldSelector="+selector))
	}
	for _, o := range append(e.names(k, r), objectName{name: "nobody"}) {
		if o.namespace == "" && k.namespaced {
			o.namespace = "shop"
		}
		for _, accept := range []string{asJSON, asMetadata, asTable} {
			pairs = append(pairs, same(k, r, k.path(o.namespace, o.name), accept))
		}
		if len(pairs) > 100 {
			break
		}
	}
	return pairs
}

// versions combine resource versions and what they are to mean.
func (e *exam) versions(k kind, r revision) (pairs []pair) {
	position := e.system.position(e.T, k, r)
	old := e.system.cuts[0].rv
	for _, version := range []string{"", "0", strconv.FormatInt(old, 10), strconv.FormatInt(position, 10), "9000000000", "-1", "x"} {
		query := "resourceVersion=" + version
		pairs = append(pairs, same(k, r, k.path("shop", "settings"), asJSON, query))
		for _, match := range []string{"", "NotOlderThan", "Exact", "Newest"} {
			match := "resourceVersionMatch=" + match
			pairs = append(pairs, same(k, r, k.path(""), asJSON, query, match), same(k, r, k.path(""), asTable, query, match, "limit=2"))
		}
	}
	return pairs
}

// refused are questions that the real server refuses, or takes in spite of all.
func (e *exam) refused(k kind, r revision) (pairs []pair) {
	for _, query := range [][]string{
		{"labelSelector==a"}, {"labelSelector=a in b"}, {"labelSelector=-"}, {"labelSelector=a=" + long}, {"labelSelector=app,,tier"}, {"labelSelector=app>3"},
		{"fieldSelector=a"}, {"fieldSelector=a=b=c"}, {"fieldSelector=metadata.name"}, {"fieldSelector=metadata.name in (a)"}, {"fieldSelector=,"}, {"fieldSelector=metadata.name=" + long},
		{"limit=-1"}, {"limit=x"}, {"limit=9223372036854775808"}, {"limit=0"}, {"timeoutSeconds=x"}, {"timeoutSeconds=-1"}, {"timeoutSeconds=10"}, {"timeout=x"}, {"timeout=0s"}, {"timeout=9h"}, {"timeout="}, {"watch=true", "timeout=x", "timeoutSeconds=1"},
		{"continue=x"}, {"continue=e30"}, {"continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiIuLi8uLi8ifQ"}, {"continue=x", "resourceVersion=1"},
		{"continue=x", "resourceVersionMatch=Exact", "resourceVersion=1"},
		{"sendInitialEvents=true"}, {"sendInitialEvents=false"}, {"sendInitialEvents=x"}, {"sendInitialEvents=true", "resourceVersionMatch=NotOlderThan"},
		{"watch=x", "timeoutSeconds=2"}, {"watch=false"}, {"allowWatchBookmarks=true"}, {"allowWatchBookmarks=x"}, {"pretty=true"}, {"unknown=1"}, {"shardSelector=x"},
		{"watch=true", "sendInitialEvents=true"}, {"watch=true", "sendInitialEvents=true", "resourceVersionMatch=Exact"}, {"watch=true", "resourceVersionMatch=NotOlderThan", "resourceVersion=1"},
		{"watch=true", "resourceVersionMatch=Exact", "resourceVersion=1"}, {"watch=true", "sendInitialEvents=false", "resourceVersion=0", "timeoutSeconds=1"}, {"watch=true", "resourceVersion=x", "timeoutSeconds=1"}, {"watch=true", "labelSelector==a"},
		{"watch=true", "fieldSelector=spec.nowhere=x"}, {"watch=true", "continue=x", "timeoutSeconds=4"}, {"watch=true", "resourceVersion=9000000000", "timeoutSeconds=4"},
	} {
		pairs = append(pairs, same(k, r, k.path(""), asJSON, query...))
	}
	return append(pairs,
		same(k, r, k.path(""), wantsTableUnknown), same(k, r, k.path(""), wantsTableOrNone), same(k, r, k.path("shop"), "text/html"), same(k, r, k.path("shop"), "*/*"), same(k, r, k.path("shop"), ""),
		same(k, r, k.path("shop", "settings"), asJSON, "labelSelector=-"), same(k, r, k.path("shop", "settings"), asJSON, "pretty=true"), same(k, r, k.path("shop", "settings"), asTable, "includeObject=Bad"),
		same(k, r, k.path("shop", "nobody"), asTable), same(k, r, k.path("nowhere", "settings"), asJSON), same(k, r, k.path("", "settings"), asJSON), same(k, r, k.path("shop", "Not:A:Name"), asJSON),
	)
}

var long = strings.Repeat("a", 300)

// strangers are paths that no server serves.
func (e *exam) strangers(r revision) (pairs []pair) {
	for _, path := range []string{
		"/api/v1/nobodies", "/api/v1/namespaces/shop/nobodies", "/api/v1/namespaces/shop/nobodies/one", "/api/v2", "/api/v2/pods", "/apis/apps/v7/deployments", "/apis/nobody.example.com/v1/things",
		"/apis/nobody.example.com", "/apis/example.com/v1/nobodies", "/apis/example.com/v7/widgets", "/apis/apps/v1/nobodies", "/nowhere", "/api/v1/pods/", "/apis/", "/api/", "/api/v1/namespaces/shop/pods/web-1/nothing",
		"/apis/example.com/v1/namespaces/shop/widgets/nobody", "/apis/example.com/v1/namespaces/shop/widgets/big/status",
	} {
		pairs = append(pairs, same(kind{}, r, path, asJSON))
	}
	return pairs
}

// subresources are what is made of objects.
func (e *exam) subresources(r revision) (pairs []pair) {
	for _, path := range []string{
		"/apis/apps/v1/namespaces/shop/deployments/web/scale", "/apis/apps/v1/namespaces/shop/replicasets/web-6d4f/scale", "/apis/example.com/v1/namespaces/shop/widgets/big/scale", "/apis/example.com/v1/namespaces/shop/widgets/small/scale",
		"/apis/apps/v1/namespaces/shop/deployments/web/status", "/api/v1/namespaces/shop/pods/web-1/status", "/api/v1/namespaces/shop/pods/nobody/status", "/api/v1/nodes/worker-1/status",
	} {
		for _, accept := range []string{asJSON, asMetadata, asTable} {
			pairs = append(pairs, same(kind{}, r, path, accept))
		}
	}
	return pairs
}

// ofItself is what a server says of itself.
func (e *exam) ofItself(r revision) (pairs []pair) {
	for _, path := range []string{"/api", "/apis"} {
		pairs = append(pairs, same(kind{}, r, path, asJSON), same(kind{}, r, path, asDiscovery))
	}
	versions := map[string]bool{}
	for _, k := range e.system.kinds {
		if path := strings.TrimSuffix(k.path(""), "/"+k.Resource); !versions[path] {
			versions[path] = true
			pairs = append(pairs, same(kind{}, r, path, asJSON), same(kind{}, r, "/openapi/v3"+path, asJSON))
			if k.Group != "" {
				pairs = append(pairs, same(kind{}, r, "/apis/"+k.Group, asJSON))
			}
		}
	}
	return append(pairs, same(kind{}, r, "/version", asJSON), same(kind{}, r, "/openapi/v3", asJSON),
		same(kind{}, r, "/healthz", "*/*"), same(kind{}, r, "/livez", "*/*"), same(kind{}, r, "/readyz", "*/*"))
}
