package redact_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/patch"
)

var secrets = schema.GroupResource{Resource: "secrets"}

func keyFile(t *testing.T) redact.FileKey {
	t.Helper()
	k, err := redact.LoadKey(filepath.Join(t.TempDir(), "redaction.key"))
	require.NoError(t, err)
	return k
}

func key(t *testing.T) redact.Key { return keyFile(t).Of("uid-of-kube-system") }

func redactor(t *testing.T, k redact.Key, mode redact.Secrets, paths ...string) *redact.Redactor {
	t.Helper()
	parsed, err := redact.ParsePaths(paths)
	require.NoError(t, err)
	r, err := redact.New(k, mode, parsed)
	require.NoError(t, err)
	return r
}

func apply(t *testing.T, r *redact.Resource, text string) string {
	t.Helper()
	doc, err := patch.Canonical([]byte(text))
	require.NoError(t, err)
	out, err := r.Apply(doc, "ns", "name")
	require.NoError(t, err)
	canonical, err := patch.Canonical(out)
	require.NoError(t, err)
	require.Equal(t, string(canonical), string(out), "redacted text is canonical")
	return string(out)
}

func TestNoValueOfASecretRemains(t *testing.T) {
	inner := `{"apiVersion":"v1","data":{"password":"aHVudGVyMg=="},"kind":"Secret","metadata":{"annotations":{},"name":"name","namespace":"ns"},"stringData":{"token":"hunter2"},"type":"Opaque"}`
	annotation, err := json.Marshal(inner)
	require.NoError(t, err)
	text := `{"kind":"Secret","data":{"password":"aHVudGVyMg==","empty":""},"stringData":{"token":"hunter2"},"type":"Opaque","metadata":{"labels":{"keep":"me"},"annotations":{
		"kubectl.kubernetes.io/last-applied-configuration":` + string(annotation) + `}}}`
	out := apply(t, redactor(t, key(t), redact.Hash).For(secrets), text)
	require.NotContains(t, out, "aHVudGVyMg")
	require.NotContains(t, out, "hunter2")
	require.Contains(t, out, `"keep":"me"`)
	require.Contains(t, out, `"type":"Opaque"`)

	var seen struct {
		Data     map[string]string
		Metadata struct{ Annotations map[string]string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &seen))
	var applied struct{ Data map[string]string }
	require.NoError(t, json.Unmarshal([]byte(seen.Metadata.Annotations["kubectl.kubernetes.io/last-applied-configuration"]), &applied))
	require.True(t, strings.HasPrefix(seen.Data["password"], "hmac-sha256:"))
	require.Equal(t, seen.Data["password"], applied.Data["password"], "one value has the same hash in the object and in the applied copy")
}

func TestAChangedValueHasAnotherHash(t *testing.T) {
	r := redactor(t, key(t), redact.Hash).For(secrets)
	before := apply(t, r, `{"data":{"a":"x","b":"y"}}`)
	require.Equal(t, before, apply(t, r, `{"data":{"b":"y","a":"x"}}`))
	after := apply(t, r, `{"data":{"a":"z","b":"y"}}`)
	require.NotEqual(t, before, after)
	doc, err := patch.Diff(patch.Doc(before), patch.Doc(after))
	require.NoError(t, err)
	require.Contains(t, string(doc), `"/data/a"`)
	require.NotContains(t, string(doc), `"/data/b"`)
}

func TestEqualValuesOfTwoObjectsHaveDifferentHashes(t *testing.T) {
	r := redactor(t, key(t), redact.Hash).For(secrets)
	one, err := r.Apply(patch.Doc(`{"data":{"a":"x"}}`), "ns", "one")
	require.NoError(t, err)
	two, err := r.Apply(patch.Doc(`{"data":{"a":"x"}}`), "ns", "two")
	require.NoError(t, err)
	require.NotEqual(t, string(one), string(two))
}

func TestEqualValuesOfTwoClustersHaveDifferentHashes(t *testing.T) {
	file := keyFile(t)
	const text = `{"data":{"a":"x"}}`
	one := apply(t, redactor(t, file.Of("one"), redact.Hash).For(secrets), text)
	two := apply(t, redactor(t, file.Of("two"), redact.Hash).For(secrets), text)
	require.NotEqual(t, one, two)
	require.NotEqual(t, file.Of("one").Fingerprint(), file.Of("two").Fingerprint(), "nor do their keys")
	require.Equal(t, one, apply(t, redactor(t, file.Of("one"), redact.Hash).For(secrets), text))
}

func TestFurtherPathsAreReplacedInAnyKind(t *testing.T) {
	r := redactor(t, key(t), redact.Record, "*.example.org:/spec/credentials/*/token", "configmaps:/data/password")
	require.Nil(t, r.For(secrets), "the operator records the values of Secrets")
	out := apply(t, r.For(schema.GroupResource{Group: "example.org", Resource: "things"}),
		`{"spec":{"credentials":[{"token":"hunter2","user":"u"},{"token":{"deep":"hunter2"}}]}}`)
	require.NotContains(t, out, "hunter2")
	require.Contains(t, out, `"user":"u"`)
	require.NotContains(t, apply(t, r.For(schema.GroupResource{Resource: "configmaps"}), `{"data":{"password":"hunter2"}}`), "hunter2")
	require.Nil(t, r.For(schema.GroupResource{Group: "other.org", Resource: "things"}))
}

func TestAPathThatCannotBeReadIsNamed(t *testing.T) {
	for _, text := range []string{"", "secrets", "secrets:data", ":/data", "se[crets:/data", "secrets:/a~2"} {
		_, err := redact.ParsePath(text)
		require.ErrorContains(t, err, text)
	}
}

func TestTheKeyIsMadeOnceAndReadByItsOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "redaction.key")
	_, err := redact.ReadKey(path)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NoDirExists(t, filepath.Dir(path), "reading makes nothing")
	first, err := redact.LoadKey(path)
	require.NoError(t, err)
	second, err := redact.LoadKey(path)
	require.NoError(t, err)
	require.Equal(t, first.Of("a").Fingerprint(), second.Of("a").Fingerprint())
	require.NotEqual(t, first.Of("a").Fingerprint(), keyFile(t).Of("a").Fingerprint())
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())

	require.NoError(t, os.Chmod(path, 0o644))
	_, err = redact.LoadKey(path)
	require.ErrorContains(t, err, "chmod")
	require.NoError(t, os.Chmod(path, 0o600))
	require.NoError(t, os.WriteFile(path, []byte("short\n"), 0o600))
	_, err = redact.LoadKey(path)
	require.ErrorContains(t, err, "64 hexadecimal digits")
}
