package replay_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// characters is a ConfigMap with every character on which writers and readers of YAML differ.
func characters() *unstructured.Unstructured {
	data := map[string]any{}
	for r := rune(0); r <= 0xA0; r++ {
		data[fmt.Sprintf("%04X", r)] = "a" + string(r) + "b\n" + string(r)
	}
	for _, r := range []rune{0x2028, 0x202E, 0xFEFF, 0xFFFE} {
		data[fmt.Sprintf("%04X", r)] = "a" + string(r) + "b\n" + string(r)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "characters", "namespace": "shop"}, "data": data,
	}}
}

const steeringObjects = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"a\u001b[31m\u202e\nforged","namespace":"shop"},"rules":[]}
{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"gears.example.com"},"spec":{"group":"example.com","scope":"Namespaced",
"names":{"plural":"gears","singular":"gear","kind":"Gear","listKind":"GearList"},"versions":[{"name":"v1","served":true,"storage":true,
"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}},
"additionalPrinterColumns":[{"name":"C\u001b[31mol\u009b\nforged","type":"string","jsonPath":".spec.text"}]}]}}
{"apiVersion":"example.com/v1","kind":"Gear","metadata":{"name":"odd","namespace":"shop"},"spec":{"text":"a\u001b[31m\u009b\u202eb","<<":{"a":1}}}`

// whatTheServerTakes is about objects that any user of a cluster can make: they read back, and steer no terminal.
func whatTheServerTakes(t *testing.T, c *cluster) {
	made := []*unstructured.Unstructured{c.maker.Create(characters())}
	for decoder := json.NewDecoder(strings.NewReader(steeringObjects)); decoder.More(); {
		object := &unstructured.Unstructured{}
		require.NoError(t, decoder.Decode(&object.Object))
		made = append(made, c.maker.Create(object))
	}
	c.awaitRecorded(made...)

	t.Run("in each form of a snapshot", func(t *testing.T) {
		dir := t.TempDir()
		for _, output := range []string{"list.yaml", "files", "all.tar.zst"} {
			done := c.replay("snapshot", "-o", filepath.Join(dir, output))
			require.Zero(t, done.code, done.stderr)
		}
		requireHolds(t, made, readList(t, filepath.Join(dir, "list.yaml")).Items)
		requireHolds(t, made, readFiles(t, filepath.Join(dir, "files")))
		requireHolds(t, made, readTar(t, filepath.Join(dir, "all.tar.zst")))
	})
	t.Run("in YAML of get, which is that of kubectl else", func(t *testing.T) {
		for _, object := range made {
			if object.GetKind() == "CustomResourceDefinition" {
				continue // its status moves
			}
			got := c.replay("get", object.GetKind()+"/"+object.GetName(), "-n", "shop", "-o", "yaml", "--show-managed-fields")
			require.Zero(t, got.code, got.stderr)
			requireHolds(t, []*unstructured.Unstructured{object}, []unstructured.Unstructured{parse(t, []byte(got.stdout))})
		}
		for _, question := range []string{"deploy,sts,sa,svc,pods -n shop", "deploy web -n shop", "crd widgets.example.com", "cm -n kube-system"} {
			args := append([]string{"get"}, append(strings.Fields(question), "-o", "yaml")...)
			got := c.replay(append(args, "-q")...)
			require.Zero(t, got.code, got.stderr)
			require.Equal(t, c.kubectl(args...).stdout, got.stdout, question)
		}
	})
	t.Run("without a control", func(t *testing.T) {
		for _, question := range []string{
			"get gears,roles -n shop", "get roles,gears -n shop -o name", "get gears,roles -n shop -o yaml", "get gears,roles -n shop -o json", "snapshot", "snapshot --format json",
			"diff -A -o name --from seq:1", "diff -A -o json --from seq:1", "log roles,gears -n shop -o json",
		} {
			got := c.replay(strings.Fields(question)...)
			require.NotEmpty(t, got.stdout, "%s: %s", question, got.stderr)
			require.NotContains(t, "\n"+got.stdout, "\nforged", question)
			steers := func(r rune) bool { return r != '\n' && unicode.In(r, unicode.Cc, unicode.Bidi_Control) }
			require.Falsef(t, strings.ContainsFunc(got.stdout+got.stderr, steers), "%s: %.2000q", question, got.stdout+got.stderr)
		}
	})
}

// requireHolds requires that the objects are there, as they were made.
func requireHolds(t *testing.T, made []*unstructured.Unstructured, found []unstructured.Unstructured) {
	t.Helper()
	for _, want := range made {
		if want.GetKind() == "CustomResourceDefinition" {
			continue // its status moves
		}
		var same bool
		for _, got := range found {
			if got.GetUID() == want.GetUID() {
				require.Equal(t, want.Object, got.Object)
				same = true
			}
		}
		require.True(t, same, "%s %q is missing", want.GetKind(), want.GetName())
	}
}
