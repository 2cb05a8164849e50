package system_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shape is a Secret that holds the canary in one way. then changes it.
type shape struct {
	name string
	body map[string]any
	then func(a *act, name string)
}

const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// canaryShapes are 64 Secrets of all types, changed in all ways. Annotations of kubectl and of other tools hold copies.
func canaryShapes(t *testing.T, canary string) []shape {
	t.Helper()
	shapes := append(canaryValues(t, canary), canaryActs(canary)...)
	shapes = append(shapes, canaryCopies(t, canary)...)
	shapes = append(shapes, canaryTools(t, canary)...)
	require.Len(t, shapes, 64)
	return shapes
}

func texts(keysAndValues ...string) map[string]any {
	m := map[string]any{}
	for i := 0; i < len(keysAndValues); i += 2 {
		m[keysAndValues[i]] = keysAndValues[i+1]
	}
	return m
}

func in64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// noisy gives that many random bytes with the canary here and there, at each of the alignments of base64.
func noisy(t *testing.T, canary string, size int) string {
	t.Helper()
	noise := make([]byte, size)
	_, err := rand.Read(noise)
	require.NoError(t, err)
	for i := range 3 {
		copy(noise[i*size/4+i:], canary)
	}
	return in64(string(noise))
}

// zipped is in base64, and so stored that the canary would be found in it.
func zipped(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.NoCompression)
	require.NoError(t, err)
	_, err = w.Write([]byte(text))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return in64(b.String())
}

func canaryValues(t *testing.T, canary string) []shape {
	typed := func(name, kind string, data map[string]any) shape {
		return shape{name: name, body: map[string]any{"type": kind, "stringData": data}}
	}
	data := func(name string, keysAndValues ...string) shape {
		return shape{name: name, body: map[string]any{"data": texts(keysAndValues...)}}
	}
	account := typed("account-token", "kubernetes.io/service-account-token", texts("token", canary))
	account.body["metadata"] = map[string]any{"annotations": texts("kubernetes.io/service-account.name", "default")}
	immutable := data("immutable", "a", in64(canary))
	immutable.body["immutable"] = true
	many := data("many")
	for _, key := range "abcdefghijklmnopqrstuvwxyz" {
		many.body["data"].(map[string]any)[string(key)] = in64(string(key) + canary)
	}
	return []shape{
		typed("text", "Opaque", texts("a", canary)), data("data", "a", in64(canary)), data("shifted-1", "a", in64("x"+canary)), data("shifted-2", "a", in64("xx"+canary)),
		immutable, data("large", "a", noisy(t, canary, 700_000)), data("binary", "a", noisy(t, canary, 300)), data("beside-empty", "a", in64(canary), "b", ""),
		many, data("odd-key", ".A_b-c.d", in64(canary)), account,
		typed("bootstrap-token", "bootstrap.kubernetes.io/token", texts("token-id", "abcdef", "token-secret", canary)),
		typed("helm-release", "helm.sh/release.v1", texts("release", zipped(t, canary))),
		typed("docker-config", "kubernetes.io/dockerconfigjson", texts(".dockerconfigjson", `{"auths":{"r":{"auth":"`+in64("me:"+canary)+`"}}}`)),
		typed("docker-cfg", "kubernetes.io/dockercfg", texts(".dockercfg", `{"r":{"password":"`+canary+`"}}`)),
		typed("basic-auth", "kubernetes.io/basic-auth", texts("username", "me", "password", canary)),
		typed("ssh-auth", "kubernetes.io/ssh-auth", texts("ssh-privatekey", canary)),
		typed("tls", "kubernetes.io/tls", texts("tls.crt", "public", "tls.key", canary)),
		typed("pem", "Opaque", texts("key.pem", "-----BEGIN KEY-----\n"+canary+"\n-----END KEY-----\n")),
		typed("in-64-again", "Opaque", texts("a", in64(canary))),
	}
}

func canaryActs(canary string) []shape {
	acted := func(name string, then func(a *act, name string)) shape {
		return shape{name: name, body: map[string]any{"stringData": texts("a", canary)}, then: then}
	}
	merged := func(name, body string) shape {
		return acted(name, func(a *act, name string) { a.merge(secrets, name, body) })
	}
	finalized := acted("finalized", func(a *act, name string) {
		a.delete(secrets, name)
		a.merge(secrets, name, `{"metadata":{"finalizers":null}}`)
	})
	finalized.body["metadata"] = map[string]any{"finalizers": []any{"example.dev/keep"}}
	return []shape{
		merged("patched", `{"stringData":{"a":"b`+canary+`","c":"`+canary+`"}}`), merged("labelled", `{"metadata":{"labels":{"a":"b"}}}`),
		merged("annotated", `{"metadata":{"annotations":{"a":"`+canary+`"}}}`), merged("emptied", `{"data":null}`),
		acted("deleted", func(a *act, name string) { a.delete(secrets, name) }),
		acted("made-again", func(a *act, name string) {
			a.delete(secrets, name)
			a.create(secrets, object("v1", "Secret", "default", name, map[string]any{"stringData": texts("a", canary)}))
		}),
		acted("applied-by-server", func(a *act, name string) {
			o := object("v1", "Secret", "default", name, map[string]any{"data": texts("a", in64("other"+canary))})
			_, err := a.in(secrets).Apply(a.t.Context(), name, o, metav1.ApplyOptions{FieldManager: "applier", Force: true})
			require.NoError(a.t, err)
		}),
		finalized,
	}
}

func annotated(name, key, value string) shape {
	return shape{name: name, body: map[string]any{"metadata": map[string]any{"annotations": texts(key, value)}}}
}

// canaryCopies are values as kubectl apply copies them into annotations, and as people and other clients do.
func canaryCopies(t *testing.T, canary string) (shapes []shape) {
	nested, err := json.Marshal(`{"apiVersion":"v1","kind":"Secret","stringData":{"a":"` + canary + `"}}`)
	require.NoError(t, err)
	for name, copied := range map[string]string{
		"applied":           `{"apiVersion":"v1","data":{"a":"` + in64(canary) + `"},"kind":"Secret","metadata":{"annotations":{},"name":"copy-applied","namespace":"default"},"type":"Opaque"}`,
		"texts":             `{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{"a":"` + canary + `"},"name":"copy-texts","namespace":"default"},"stringData":{"a":"` + canary + `"}}`,
		"in-itself":         `{"apiVersion":"v1","kind":"Secret","metadata":{"annotations":{"` + lastApplied + `":` + string(nested) + `}}}`,
		"broken":            `{"kind":"Secret","data":{"a":"` + canary + `"`,
		"plain":             canary,
		"yaml":              "kind: Secret\nstringData:\n  a: " + canary + "\n",
		"two-documents":     `{"kind":"Secret"}{"kind":"Secret","data":{"a":"` + canary + `"}}`,
		"twice":             `{"kind":"Secret","data":{"a":"` + canary + `"},"data":{"b":"` + canary + `"}}`,
		"escaped":           `{"kind":"Secret","d\u0061ta":{"\u0061":"` + canary + `"}}`,
		"lone-surrogate":    `{"kind":"Secret","data":{"a":"\ud800` + canary + `"}}`,
		"arrays":            `{"kind":"Secret","data":{"a":["` + canary + `",{"b":"` + canary + `"}]}}`,
		"array":             `[{"data":{"a":"` + canary + `"}}]`,
		"list":              `{"apiVersion":"v1","kind":"List","items":[{"kind":"Secret","data":{"a":"` + canary + `"}}]}`,
		"string":            `"` + canary + `"`,
		"data-as-text":      `{"kind":"Secret","data":"` + canary + `"}`,
		"capitals":          `{"kind":"Secret","Data":{"a":"` + canary + `"}}`,
		"spec":              `{"kind":"Secret","spec":{"data":{"a":"` + canary + `"}}}`,
		"snake":             `{"kind":"Secret","string_data":{"a":"` + canary + `"}}`,
		"other-kind":        `{"kind":"ConfigMap","data":{"a":"` + canary + `"}}`,
		"no-kind":           `{"data":{"a":"` + canary + `"}}`,
		"other-metadata":    `{"kind":"Secret","metadata":{"note":"` + canary + `"}}`,
		"type":              `{"kind":"Secret","type":{"a":"` + canary + `"}}`,
		"in-64":             in64(`{"kind":"Secret","data":{"a":"` + canary + `"}}`),
		"annotation-object": `{"kind":"Secret","metadata":{"annotations":{"a":{"b":"` + canary + `"}}}}`,
	} {
		shapes = append(shapes, annotated("copy-"+name, lastApplied, copied))
	}
	return shapes
}

// canaryTools have copies where other tools keep them.
func canaryTools(t *testing.T, canary string) (shapes []shape) {
	copied := `{"apiVersion":"v1","kind":"Secret","stringData":{"a":"` + canary + `"}}`
	for key, value := range map[string]string{
		"kapp.k14s.io/original":                          copied,
		"kapp.k14s.io/original-diff":                     "- type: test\n  value: " + canary + "\n",
		"objectset.rio.cattle.io/applied":                zipped(t, copied),
		"field.cattle.io/description":                    canary,
		"banzaicloud.com/last-applied":                   zipped(t, copied),
		"helm.sh/hook":                                   canary,
		"argocd.argoproj.io/compare-options":             canary,
		"kustomize.toolkit.fluxcd.io/reconcile":          canary,
		"sealedsecrets.bitnami.com/patch":                copied,
		"replicator.v1.mittwald.de/replicated-keys":      in64("x" + copied),
		"reflector.v1.k8s.emberstack.com/auto-reflects":  in64("xx" + copied),
		"example.dev/a-note-that-somebody-wrote-by-hand": "the password is " + canary,
	} {
		name := strings.NewReplacer("/", "-", "_", "-").Replace("tool-" + key)
		shapes = append(shapes, annotated(name, key, value))
	}
	return shapes
}
