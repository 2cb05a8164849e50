package kube

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyChangedDocumentsAreFetchedAndAFailureAffectsNoOthers(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	documents := map[string]string{
		"/api":     `{ "b": 1, "a": 2 }`,
		"/version": `{"gitVersion":"v1"}`,
		"/openapi/v3": `{"paths":{"api/v1":{"serverRelativeURL":"/openapi/v3/api/v1?hash=AAA"},
			"apis/x/v1":{"serverRelativeURL":"/openapi/v3/apis/x/v1?hash=BBB"},"apis/gone/v1":{"serverRelativeURL":"/openapi/v3/apis/gone/v1?hash=CCC"},
			"apis/plain/v1":{"serverRelativeURL":"/openapi/v3/apis/plain/v1"}}}`,
		"/openapi/v3/api/v1?hash=AAA":    `{"openapi":"3.0.0"}`,
		"/openapi/v3/apis/x/v1?hash=BBB": `{"openapi":"3.0.1"}`,
		"/openapi/v3/apis/plain/v1":      `{}`,
	}
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		asked = append(asked, r.URL.String())
		if text, ok := documents[r.URL.String()]; ok {
			answer(200, "application/json", text)(w, r)
			return
		}
		answer(503, "text/plain", "not now")(w, r)
	})
	got, err := client.Documents(t.Context(), map[string]string{"/openapi/v3/api/v1": "AAA", "/openapi/v3/apis/x/v1": "old"})
	require.ErrorContains(t, err, "/apis: ")
	require.ErrorContains(t, err, "/openapi/v3/apis/gone/v1: ")
	have := map[string]string{}
	bodies := map[string]string{}
	for _, d := range got {
		have[d.Path], bodies[d.Path] = d.Hash, string(d.Body)
	}
	require.Equal(t, map[string]string{"/api": documents["/api"], "/version": documents["/version"], "/openapi/v3": documents["/openapi/v3"],
		"/openapi/v3/api/v1": "", "/openapi/v3/apis/x/v1": `{"openapi":"3.0.1"}`, "/openapi/v3/apis/plain/v1": `{}`}, bodies)
	require.NotContains(t, asked, "/openapi/v3/api/v1?hash=AAA")
	require.Equal(t, "BBB", have["/openapi/v3/apis/x/v1"])

	mu.Lock()
	documents["/api"] = `{"a":2,"b":1}`
	documents["/version"] = `{"gitVersion":"v2"}`
	mu.Unlock()
	again, err := client.Documents(t.Context(), have)
	require.Error(t, err)
	for _, d := range again {
		require.Equal(t, d.Path == "/version", d.Body != nil, d.Path)
	}
}
