package redact_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/patch"
)

const applied = "kubectl.kubernetes.io/last-applied-configuration"

// annotated returns a Secret ns/name with one annotation.
func annotated(t *testing.T, key, value string) string {
	t.Helper()
	annotations, err := json.Marshal(map[string]string{key: value})
	require.NoError(t, err)
	return `{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":` + string(annotations) + `,"name":"name","namespace":"ns"},"type":"Opaque"}`
}

// annotation returns the value of an annotation in a redacted object.
func annotation(t *testing.T, text, key string) string {
	t.Helper()
	var o struct {
		Metadata struct{ Annotations map[string]string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &o))
	require.Contains(t, o.Metadata.Annotations, key)
	return o.Metadata.Annotations[key]
}

func isHash(text string) bool {
	return strings.HasPrefix(text, "hmac-sha256:") && len(text) == len("hmac-sha256:")+32
}

func TestTheValueOfAnAnnotationOfASecretIsHashed(t *testing.T) {
	r := redactor(t, key(t), redact.Hash).For(secrets)
	for _, key := range []string{
		"kapp.k14s.io/original", "objectset.rio.cattle.io/applied", "banzaicloud.com/last-applied", "argocd.argoproj.io/sync-options",
		"sealedsecrets.bitnami.com/managed", "kustomize.toolkit.fluxcd.io/checksum", "example.org/what~ever/deep", "note", "",
	} {
		out := apply(t, r, annotated(t, key, "hunter2"))
		require.NotContains(t, out, "hunter2", key)
		require.True(t, isHash(annotation(t, out, key)), key)
	}
}

func TestAnnotationsThatNeverHoldDataAreKept(t *testing.T) {
	r := redactor(t, key(t), redact.Hash).For(secrets)
	for _, key := range []string{
		"kubernetes.io/service-account.name", "kubernetes.io/service-account.uid", "meta.helm.sh/release-name", "meta.helm.sh/release-namespace",
		"argocd.argoproj.io/tracking-id", "cert-manager.io/certificate-name",
	} {
		require.Equal(t, "web", annotation(t, apply(t, r, annotated(t, key, "web")), key))
		named := redactor(t, redact.Key{}, redact.Hash, "secrets:/metadata/annotations/"+strings.ReplaceAll(key, "/", "~1")).For(secrets)
		require.True(t, isHash(annotation(t, apply(t, named, annotated(t, key, "web")), key)), "the operator has named it")
	}
	require.NotContains(t, apply(t, r, `{"metadata":{"annotations":{"meta.helm.sh/release-name":{"deep":"hunter2"}}}}`), "hunter2", "that is no name")
}

func TestTheLastAppliedTextKeepsItsStructureOnlyIfItIsTheSecret(t *testing.T) {
	r := redactor(t, key(t), redact.Hash).For(secrets)
	for name, inner := range map[string]string{
		"as kubectl writes it":    `{"apiVersion":"v1","data":{"a":"hunter2"},"kind":"Secret","metadata":{"annotations":{},"creationTimestamp":null,"name":"name","namespace":"ns"},"type":"Opaque"}`,
		"with texts":              `{"apiVersion":"v1","immutable":true,"kind":"Secret","metadata":{"labels":{"a":"b"},"name":"name","namespace":"ns"},"stringData":{"a":"hunter2","b":{"c":["hunter2"]}}}`,
		"with annotations":        `{"apiVersion":"v1","data":null,"kind":"Secret","metadata":{"annotations":{"a":"hunter2","b":{"c":"hunter2"},"meta.helm.sh/release-name":"web"},"name":"name","namespace":"ns"}}`,
		"with a copy in the copy": `{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{"` + applied + `":"{\"kind\":\"Secret\",\"data\":{\"a\":\"hunter2\"}}"},"name":"name","namespace":"ns"}}`,
	} {
		out := apply(t, r, annotated(t, applied, inner))
		require.NotContains(t, out, "hunter2", name)
		got := annotation(t, out, applied)
		require.Contains(t, got, `"kind":"Secret"`, name)
		require.Contains(t, got, `"name":"name"`, name)
	}
	for name, inner := range map[string]string{
		"no JSON":                         `{"data":{"a":"hunter2"`,
		"a text":                          `"hunter2"`,
		"plain text":                      `hunter2`,
		"YAML":                            "data:\n  a: hunter2\n",
		"two documents":                   `{"kind":"Secret"}{"data":{"a":"hunter2"}}`,
		"a list":                          `[{"data":{"a":"hunter2"}}]`,
		"a List":                          `{"kind":"List","items":[{"data":{"a":"hunter2"}}]}`,
		"no kind":                         `{"apiVersion":"v1","data":{"a":"hunter2"}}`,
		"another kind":                    `{"kind":"ConfigMap","data":{"a":"hunter2"}}`,
		"a kind that is no text":          `{"kind":{"Secret":"hunter2"}}`,
		"another version":                 `{"apiVersion":"hunter2","kind":"Secret"}`,
		"data that is a text":             `{"kind":"Secret","data":"hunter2"}`,
		"data that is a list":             `{"kind":"Secret","data":["hunter2"]}`,
		"data in capitals":                `{"kind":"Secret","Data":{"a":"hunter2"}}`,
		"data below spec":                 `{"kind":"Secret","spec":{"data":{"a":"hunter2"}}}`,
		"string_data":                     `{"kind":"Secret","string_data":{"a":"hunter2"}}`,
		"a type that is no text":          `{"kind":"Secret","type":{"a":"hunter2"}}`,
		"immutable that is a text":        `{"kind":"Secret","immutable":"hunter2"}`,
		"metadata that is a text":         `{"kind":"Secret","metadata":"hunter2"}`,
		"metadata with another member":    `{"kind":"Secret","metadata":{"note":"hunter2"}}`,
		"the name of another":             `{"kind":"Secret","metadata":{"name":"hunter2"}}`,
		"the namespace of another":        `{"kind":"Secret","metadata":{"namespace":"hunter2"}}`,
		"labels that are no texts":        `{"kind":"Secret","metadata":{"labels":{"a":{"b":"hunter2"}}}}`,
		"annotations that are a text":     `{"kind":"Secret","metadata":{"annotations":"hunter2"}}`,
		"a time of creation that is text": `{"kind":"Secret","metadata":{"creationTimestamp":"hunter2"}}`,
		"a member twice":                  `{"kind":"Secret","kind":"Other","data":{"a":"hunter2"}}`,
	} {
		out := apply(t, r, annotated(t, applied, inner))
		require.NotContains(t, out, "hunter2", name)
		require.True(t, isHash(annotation(t, out, applied)), "%s: %s", name, out)
	}
}

func TestAnnotationsOfResourcesWithARedactedPathAreHashed(t *testing.T) {
	r := redactor(t, key(t), redact.Record, "things.example.org:/spec/token", "secrets:/data/a")
	inner := `{"kind":"Thing","spec":{"token":"hunter2"}}`
	out := apply(t, r.For(schema.GroupResource{Group: "example.org", Resource: "things"}), annotated(t, applied, inner))
	require.True(t, isHash(annotation(t, out, applied)), "only a Secret keeps its structure")
	out = apply(t, r.For(schema.GroupResource{Group: "example.org", Resource: "things"}), annotated(t, applied, `{"apiVersion":"v1","data":{"a":"hunter2"},"kind":"Secret"}`))
	require.True(t, isHash(annotation(t, out, applied)), "a copy that claims to be a Secret, in a Thing, does not")
	out = apply(t, r.For(schema.GroupResource{Group: "example.org", Resource: "things"}), annotated(t, "note", "hunter2"))
	require.NotContains(t, out, "hunter2")
	out = apply(t, r.For(secrets), annotated(t, applied, `{"apiVersion":"v1","data":{"a":"hunter2","b":"Yg=="},"kind":"Secret"}`))
	require.NotContains(t, out, "hunter2")
	require.Contains(t, annotation(t, out, applied), `"b":"Yg=="`, "the operator asked for the other values of Secrets")
	require.Nil(t, r.For(schema.GroupResource{Resource: "pods"}))
}

func reapply(t *testing.T, r *redact.Resource, text string) string {
	t.Helper()
	out, err := r.Reapply(patch.Doc(text))
	require.NoError(t, err)
	return string(out)
}

func TestReapplyGivesTheSameTextAsApplyUnderStricterRules(t *testing.T) {
	text := annotated(t, applied, `{"apiVersion":"v1","data":{"a":"hunter2"},"kind":"Secret","metadata":{"annotations":{"b":"hunter2"},"name":"name","namespace":"ns"}}`)
	text = strings.Replace(text, `{"annotations":{`, `{"annotations":{"meta.helm.sh/release-name":"web","note":"hunter2",`, 1)
	text = strings.Replace(text, `"kind":"Secret","metadata"`, `"data":{"a":"hunter2","b":"eA=="},"kind":"Secret","metadata"`, 1)
	k := key(t)
	full := redactor(t, k, redact.Hash, "secrets:/type").For(secrets)
	want := apply(t, full, text)
	require.NotContains(t, want, "hunter2")
	require.Equal(t, want, reapply(t, full, want), "a hash is not hashed again")
	require.Equal(t, want, reapply(t, full, string(canonical(t, text))), "nothing was redacted before")
	require.Equal(t, want, reapply(t, full, apply(t, redactor(t, k, redact.Hash).For(secrets), text)), "a path was added")
	require.Equal(t, want, reapply(t, full, apply(t, redactor(t, k, redact.Record, "secrets:/data/a").For(secrets), text)), "the values of Secrets were recorded")
}

func canonical(t *testing.T, text string) patch.Doc {
	t.Helper()
	doc, err := patch.Canonical([]byte(text))
	require.NoError(t, err)
	return doc
}

func TestTextThatOnlyLooksLikeAHashIsReplaced(t *testing.T) {
	k := key(t)
	r := redactor(t, k, redact.Hash).For(secrets)
	object := func(value string) string {
		return `{"data":{"a":"` + value + `"},"metadata":{"name":"name","namespace":"ns"}}`
	}
	hash := strings.Split(apply(t, r, object("hunter2")), `"`)[5]
	require.True(t, isHash(hash), hash)
	require.Contains(t, reapply(t, r, object(hash)), hash)
	require.NotContains(t, apply(t, r, object(hash)), hash, "Apply replaces every served value")

	require.NotContains(t, reapply(t, redactor(t, key(t), redact.Hash).For(secrets), object(hash)), hash, "the hash was made with another key")
	for _, forged := range []string{
		"hmac-sha256:00112233445566778899aabbccddeeff", "hmac-sha256:" + strings.Repeat("z", 32), hash[:len(hash)-1], hash + "0", "x" + hash,
		hash[:len(hash)-8] + "00000000", "hmac-sha256:",
	} {
		out := reapply(t, r, object(forged))
		require.NotContains(t, out, `"`+forged+`"`, forged)
		require.True(t, isHash(strings.Split(out, `"`)[5]), out)
	}
}
