package timeshift_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kuberewind/kuberewind/internal/timeshift"
	"github.com/kuberewind/kuberewind/patch"
)

func textsOf(paths []patch.Path) []string {
	texts := []string{}
	for _, path := range paths {
		texts = append(texts, path.String())
	}
	slices.Sort(texts)
	return texts
}

func TestTypePathsFindsTheTimesOfAPod(t *testing.T) {
	require.Subset(t, textsOf(timeshift.TypePaths(reflect.TypeFor[*corev1.Pod]())), []string{
		"/metadata/creationTimestamp", "/metadata/deletionTimestamp", "/metadata/managedFields/*/time", "/status/startTime",
		"/status/conditions/*/lastTransitionTime", "/status/containerStatuses/*/state/running/startedAt", "/status/containerStatuses/*/lastState/terminated/finishedAt",
	})
	require.Equal(t, []string{"/metadata/creationTimestamp", "/metadata/deletionTimestamp", "/metadata/managedFields/*/time"},
		textsOf(timeshift.TypePaths(reflect.TypeFor[*corev1.ConfigMap]())))
}

// An openAPI holds the parts of a document that name times.
type openAPI struct {
	Components struct{ Schemas map[string]*openAPISchema }
}

type openAPISchema struct {
	Ref        string `json:"$ref"`
	Type       string
	Format     string
	AllOf      []*openAPISchema
	Properties map[string]*openAPISchema
	Items      *openAPISchema
	Values     json.RawMessage                         `json:"additionalProperties"`
	Kinds      []struct{ Group, Version, Kind string } `json:"x-kubernetes-group-version-kind"`
}

// times returns the paths to which a schema gives the format date-time, except those of a type within itself.
func (d *openAPI) times(s *openAPISchema, at string, open []string) (found []string) {
	if s == nil || slices.Contains(open, s.Ref) {
		return nil
	}
	if s.Ref != "" {
		return d.times(d.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")], at, append(slices.Clone(open), s.Ref))
	}
	if s.Format == "date-time" {
		return []string{at}
	}
	for _, part := range s.AllOf {
		found = append(found, d.times(part, at, open)...)
	}
	for name, property := range s.Properties {
		found = append(found, d.times(property, at+"/"+name, open)...)
	}
	values := &openAPISchema{}
	if json.Unmarshal(s.Values, values) == nil {
		found = append(found, d.times(values, at+"/*", open)...)
	}
	return append(found, d.times(s.Items, at+"/*", open)...)
}

// specifications returns the OpenAPI documents of an API server in the Kubernetes module.
func specifications(t *testing.T) []string {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes").Output()
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "api/openapi-spec/v3/*__v*_openapi.json"))
	require.NoError(t, err)
	return files
}

func TestTheTimesOfEveryKindMatchTheServersOpenAPI(t *testing.T) {
	compared, withOwn := 0, 0
	for _, file := range specifications(t) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var d openAPI
		require.NoError(t, json.Unmarshal(text, &d))
		for _, s := range d.Components.Schemas {
			if len(s.Kinds) != 1 || s.Properties["metadata"] == nil || s.Properties["items"] != nil {
				continue
			}
			kind := schema.GroupVersionKind(s.Kinds[0])
			object, err := scheme.Scheme.New(kind)
			if err != nil {
				require.Contains(t, []string{"apiextensions.k8s.io", "apiregistration.k8s.io"}, kind.Group, kind)
				object = &apiextensionsv1.CustomResourceDefinition{}
			}
			want := d.times(s, "", nil)
			got := textsOf(timeshift.TypePaths(reflect.TypeOf(object)))
			require.ElementsMatch(t, want, got, kind)
			compared++
			if len(got) > 3 {
				withOwn++
			}
		}
	}
	t.Logf("%d kinds compared, %d of them with times outside the metadata", compared, withOwn)
	require.Greater(t, compared, 60)
	require.Greater(t, withOwn, 20)
}

func TestACustomResourceHasTimesOnlyInTheFormatDateTime(t *testing.T) {
	definition := patch.Doc(`{"spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{` +
		`"spec":{"type":"object","properties":{"at":{"type":"string","format":"date-time"},"looks":{"type":"string"},"day":{"type":"string","format":"date"},` +
		`"*":{"type":"string","format":"date-time"},"a/b~c":{"type":"string","format":"date-time"},` +
		`"list":{"type":"array","items":{"type":"object","properties":{"at":{"type":"string","format":"date-time"}}}},` +
		`"map":{"type":"object","additionalProperties":{"type":"string","format":"date-time"}},"open":{"type":"object","additionalProperties":true},` +
		`"pod":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}}}}}}]}}`)
	metadata := textsOf(timeshift.MetadataPaths())
	require.Equal(t, []string{"/metadata/creationTimestamp", "/metadata/deletionTimestamp", "/metadata/managedFields/*/time"}, metadata)
	want := append(slices.Clone(metadata), "/spec/at", "/spec/a~1b~0c", "/spec/list/*/at", "/spec/map/*")
	for _, text := range metadata {
		want = append(want, "/spec/pod"+text)
	}
	slices.Sort(want)
	require.Equal(t, want, textsOf(timeshift.DefinitionPaths(definition, "v1")))
	require.Equal(t, metadata, textsOf(timeshift.DefinitionPaths(definition, "v2")), "another version")
	require.Equal(t, metadata, textsOf(timeshift.DefinitionPaths(nil, "v1")), "no definition")
}
