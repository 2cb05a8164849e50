package replay

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/replay/snapshot"
)

const (
	oddUID   = "00000021-0000-4000-8000-000000000000"
	halfUID  = "00000022-0000-4000-8000-000000000000"
	hugeUID  = "00000023-0000-4000-8000-000000000000"
	steerUID = "00000024-0000-4000-8000-000000000000"
)

// awkward returns the characters that writers and readers of YAML treat differently, and characters that control terminals.
func awkward() []rune {
	all := []rune{0x061C, 0x200D, 0x2028, 0x2029, 0x202E, 0x2066, 0xFEFF, 0xFFFD, 0xFFFE, 0xFFFF, 0x1F600, 0xE0001}
	for r := rune(0); r <= 0xA0; r++ {
		all = append(all, r)
	}
	return all
}

// awkwardSpec returns a spec with each of these characters in values and keys.
func awkwardSpec() map[string]any {
	spec := map[string]any{"<<": map[string]any{"a": "<<"}}
	for _, r := range awkward() {
		c := string(r)
		spec[fmt.Sprintf("%04X", r)] = []any{c, "a" + c + "b", c + "a", "a" + c, "a\n" + c + "b\n", "a" + c + "\n b", " " + c + " ", map[string]any{"k" + c: c + c}}
	}
	return spec
}

func jsonText(t *testing.T, value any) string {
	t.Helper()
	text, err := json.Marshal(value)
	require.NoError(t, err)
	return string(text)
}

// outputs returns the output of each command that writes the named widget, by command.
func outputs(t *testing.T, h *harbour, name string, code int) map[string]*unstructured.Unstructured {
	t.Helper()
	dir := t.TempDir()
	found := map[string]*unstructured.Unstructured{}
	take := func(way, text string) {
		object := &unstructured.Unstructured{}
		read := func(text []byte, into any) error { return yaml.Unmarshal(text, into) }
		if strings.Contains(way, "json") {
			read = json.Unmarshal
		}
		require.NoError(t, read([]byte(text), &object.Object), way)
		if !object.IsList() {
			found[way] = object
			return
		}
		require.NoError(t, object.EachListItem(func(item runtime.Object) error {
			if each := item.(*unstructured.Unstructured); each.GetName() == name {
				found[way] = each
			}
			return nil
		}))
	}
	for _, args := range []string{"snapshot", "snapshot --format json", "get wd -A -o yaml", "get wd -A -o json"} {
		got := h.replayed(t, strings.Fields(args)...)
		require.Equal(t, code, got.code, "%s: %s", args, got.err)
		take(args, got.out)
	}
	for _, args := range []string{"get wd -n shop -o yaml " + name, "get wd -n shop -o json " + name} {
		take(args, h.replayed(t, strings.Fields(args)...).out)
	}
	for _, target := range []string{"files", "all.tar", "list.yaml", "list.json"} {
		got := h.replayed(t, "snapshot", "-o", filepath.Join(dir, target))
		require.Equal(t, code, got.code, "%s: %s", target, got.err)
	}
	for _, target := range []string{"list.yaml", "list.json", "files/example.com/widgets/shop/" + name + ".yaml"} {
		if text, err := os.ReadFile(filepath.Join(dir, target)); err == nil {
			take(target, string(text))
		}
	}
	if text, ok := fromTar(t, filepath.Join(dir, "all.tar"), "example.com/widgets/shop/"+name+".yaml"); ok {
		take("all.tar", text)
	}
	return found
}

func fromTar(t *testing.T, path, name string) (string, bool) {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	for archive := tar.NewReader(file); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return "", false
		}
		require.NoError(t, err)
		if header.Name == name {
			text, err := io.ReadAll(archive)
			require.NoError(t, err)
			return string(text), true
		}
	}
}

func TestEveryCharacterReadsBackFromEveryOutput(t *testing.T) {
	h := newHarbour(t)
	spec := awkwardSpec()
	h.at("12:06")
	h.is(delta.Added, "widgets", "odd", oddUID, "example.com/v1", `},"spec":`+jsonText(t, spec)+`}`)
	h.discovery("v1")
	found := outputs(t, h, "odd", 0)
	require.Len(t, found, 10)
	for way, object := range found {
		require.Equal(t, spec, object.Object["spec"], way)
	}
}

func TestALoneSurrogateIsReplacedInYAMLAndKeptInJSON(t *testing.T) {
	h := newHarbour(t)
	h.at("12:06")
	h.is(delta.Added, "widgets", "half", halfUID, "example.com/v1", `},"spec":{"high":"a\ud800b","low":["\udfff"],"k\udc00":"v"}}`)
	h.discovery("v1")
	for way, object := range outputs(t, h, "half", 0) {
		require.Equal(t, map[string]any{"high": "a\uFFFDb", "low": []any{"\uFFFD"}, "k\uFFFD": "v"}, object.Object["spec"], way)
	}
	const note = "Note: widgets.example.com shop/half: U+FFFD replaces bytes that are not Unicode at /spec/high, /spec/k\uFFFD, /spec/low/0; use snapshot --format json to keep them\n"
	for _, args := range []string{"snapshot", "snapshot --for-apply", "get wd -A -o yaml", "get wd half -n shop -o yaml"} {
		require.Contains(t, h.replayed(t, strings.Fields(args)...).err, note, args)
	}
	got := h.replayed(t, "snapshot", "--format", "json")
	require.Contains(t, got.out, `"spec":{"high":"a\ud800b","k\udc00":"v","low":["\udfff"]}`)
	require.NotContains(t, got.err, "U+FFFD")
	dir := t.TempDir()
	require.Zero(t, h.replayed(t, "snapshot", "-o", dir).code)
	manifest, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	require.NoError(t, err)
	require.Contains(t, string(manifest), `"replaced": [`)
}

func TestAnObjectThatYAMLCannotHoldIsSkippedWithAnError(t *testing.T) {
	h := newHarbour(t)
	h.at("12:06")
	h.is(delta.Added, "widgets", "huge", hugeUID, "example.com/v1", `},"spec":{"n":1e400}}`)
	h.is(delta.Added, "widgets", "good", oddUID, "example.com/v1", `},"spec":{"n":1}}`)
	h.discovery("v1")
	for _, args := range []string{"snapshot", "snapshot --for-apply", "get wd -A -o yaml"} {
		got := h.replayed(t, strings.Fields(args)...)
		require.Equal(t, 1, got.code, args)
		require.Contains(t, got.err, "error: skipped: widgets.example.com shop/huge: ", args)
		require.Contains(t, got.out, "name: good", args)
		require.NotContains(t, got.out, "huge", args)
		var whole map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(got.out), &whole), args)
	}
	require.Contains(t, h.replayed(t, "get", "wd", "huge", "-n", "shop", "-o", "yaml").err, "the number at /spec/n is too large for YAML")
	dir := filepath.Join(t.TempDir(), "files")
	require.Equal(t, 1, h.replayed(t, "snapshot", "-o", dir).code)
	text, err := os.ReadFile(filepath.Join(dir, "MANIFEST.json"))
	require.NoError(t, err)
	var m snapshot.Manifest
	require.NoError(t, json.Unmarshal(text, &m))
	require.Len(t, m.Unwritten, 1)
	require.Equal(t, 1, m.Resources["widgets.example.com"])
	got := h.replayed(t, "snapshot", "--format", "json")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, `"huge"`)
}

func TestObjectsCannotControlATerminal(t *testing.T) {
	h := newHarbour(t)
	const steering = "a\x1b[31m\x07\u009b1m\u202eb\nforged"
	h.at("12:06")
	h.is(delta.Added, "customresourcedefinitions", "gears.example.com", hugeUID, "apiextensions.k8s.io/v1", `},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"widgets","kind":"Widget"},"versions":[]}}`)
	h.is(delta.Updated, "customresourcedefinitions", "widgets.example.com", crdUID, "apiextensions.k8s.io/v1", `},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"v1","served":true,"storage":true,"additionalPrinterColumns":[
		{"name":`+jsonText(t, "C"+steering)+`,"type":"string","jsonPath":".spec.text"}]}]}}`)
	h.write(delta.Added, "widgets", &booktest.Object{Namespace: steering, Name: steering, UID: steerUID, RV: "900",
		Content: docOf(t, `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"namespace":`+jsonText(t, steering)+`,"name":`+jsonText(t, steering)+`,"labels":{"l":`+jsonText(t, steering)+`,`+jsonText(t, steering)+`:"k"},"uid":"`+steerUID+`","resourceVersion":"900"},"spec":{"text":`+jsonText(t, steering)+`}}`)})
	h.discovery("v1")
	for _, args := range []string{
		"get wd -A", "get wd -A -L l", "get wd -A --show-labels", "get wd -A --show-labels --sort-by .spec.text", "get wd -A -o wide", "get wd -A -o name", "get wd -A -o json", "get wd -A -o yaml", "snapshot", "snapshot --format json",
		"diff -A --from " + at("12:05"), "diff -A -o name --from " + at("12:05"), "diff -A -o json --from " + at("12:05"), "diff -A -o unified --from " + at("12:05"),
		"diff -A -o stat --from " + at("12:05"), "log wd -A --since 2026-03-10T12:05:00Z", "log wd -A -o json --since 2026-03-10T12:05:00Z", "log wd -A --diff --since 2026-03-10T12:05:00Z", "coverage -o json", "verify -o json",
	} {
		got := h.replayed(t, strings.Fields(args)...)
		require.NotEmpty(t, got.out, "%s: %s", args, got.err)
		require.NotContains(t, "\n"+got.out+got.err, "\nforged", args)
		bad := strings.IndexFunc(got.out+got.err, func(r rune) bool { return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) })
		require.Negative(t, bad, "%s: %q", args, got.out+got.err)
	}
	var value map[string]any
	require.NoError(t, json.Unmarshal([]byte(h.replayed(t, "get", "wd", "-A", "-o", "json").out), &value))
	name, _, _ := unstructured.NestedString(value["items"].([]any)[0].(map[string]any), "metadata", "name")
	require.Equal(t, steering, name, "the JSON value is unchanged")
}

func TestATemplatePrintsRawValuesOnlyToAPipe(t *testing.T) {
	h := newHarbour(t)
	h.at("12:06")
	h.is(delta.Added, "widgets", "odd", oddUID, "example.com/v1", `},"spec":{"text":"a\u001b[31m\u009b\u202eb"}}`)
	h.discovery("v1")
	args := []string{"get", "wd", "odd", "-n", "shop", "-o", "jsonpath={.spec.text}"}
	require.Equal(t, "a\x1b[31m\u009b\u202eb", h.replayed(t, args...).out)

	keyboard, screen := openTerminal(t)
	var errOut bytes.Buffer
	require.Zero(t, Execute(t.Context(), "replay", append(args, "--database", h.DB.URL()), genericiooptions.IOStreams{In: strings.NewReader(""), Out: screen, ErrOut: &errOut}), errOut.String())
	_, err := screen.WriteString("\n")
	require.NoError(t, err)
	shown := make([]byte, 100)
	n, err := keyboard.Read(shown)
	require.NoError(t, err)
	require.Equal(t, `a\u001b[31m\u009b\u202eb`, strings.TrimSpace(string(shown[:n])))
}

// openTerminal returns both ends of a pseudo terminal.
func openTerminal(t *testing.T) (keyboard, screen *os.File) {
	t.Helper()
	keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, keyboard.Close()) })
	require.NoError(t, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
	number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, screen.Close()) })
	return keyboard, screen
}
