package replay

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// book is a record whose objects name their writers. Its clock shows minutes of one day.
type book struct {
	*booktest.Book
	t testing.TB
}

var bookStreams = []postgres.StreamSpec{
	{Group: "apps", Resource: "deployments", Kind: "Deployment", Version: "v1", Namespaced: true},
	{Resource: "configmaps", Kind: "ConfigMap", Version: "v1", Namespaced: true},
	{Resource: "secrets", Kind: "Secret", Version: "v1", Namespaced: true},
	{Resource: "nodes", Kind: "Node", Version: "v1"},
}

func newBook(t testing.TB) *book {
	t.Helper()
	config := `{"include":[],"exclude":[],"secret-values":"hash","redact":[]}`
	return &book{t: t, Book: booktest.New(t, booktest.Options{Streams: bookStreams, Config: config})}
}

// bookOf returns a book of an existing record.
func bookOf(t testing.TB, db *pgtest.Database) *book {
	return &book{t: t, Book: &booktest.Book{DB: db}}
}

func (b *book) at(clock string) {
	b.t.Helper()
	at, err := time.Parse(time.TimeOnly, clock+":00")
	require.NoError(b.t, err)
	noon := booktest.Noon
	b.Now = time.Date(noon.Year(), noon.Month(), noon.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
}

// object makes the next version of an object. fields follow its metadata, such as "spec":{}.
func (b *book) object(stream, namespace, name, uid, by, metadata, fields string) *booktest.Object {
	b.t.Helper()
	manager, subresource, _ := strings.Cut(by, "/")
	// The manager owns all fields that it can have written: atomic members have no fields below them.
	metadata += fmt.Sprintf(`"managedFields":[{"manager":%q,"operation":"Update","subresource":%q,"time":%q,"fieldsType":"FieldsV1","fieldsV1":%s}],`,
		manager, subresource, b.Now.Format(time.RFC3339), `{"f:data":{},"f:metadata":{"f:labels":{}},"f:spec":{}}`)
	return b.Next(stream, namespace, name, uid, metadata, fields)
}

// write commits one delta from a watch.
func (b *book) write(kind delta.Type, stream string, o *booktest.Object) {
	b.t.Helper()
	b.Commit(b.Item(stream, kind, delta.SourceWatch, o))
}

// listed commits a list. marker has the counts of its changes.
func (b *book) listed(stream string, cause delta.Cause, source delta.Source, marker delta.Marker, items ...postgres.Item) {
	b.t.Helper()
	end := b.Listed(stream, cause, source)
	marker.Kind, marker.Cause, marker.ToRV = end.Marker.Kind, end.Marker.Cause, end.Marker.ToRV
	end.Marker = marker
	b.Commit(append(items, end)...)
}

// interrupted commits the beginning of a gap, with the server's message.
func (b *book) interrupted(stream string, cause delta.Cause, detail string) {
	b.t.Helper()
	begin := b.Interrupted(stream, cause)
	begin.Marker.Detail = detail
	b.Commit(begin)
}

const (
	webUID      = "00000001-0000-4000-8000-000000000000"
	secondUID   = "00000002-0000-4000-8000-000000000000"
	settingsUID = "00000003-0000-4000-8000-000000000000"
	oldUID      = "00000004-0000-4000-8000-000000000000"
	credsUID    = "00000005-0000-4000-8000-000000000000"
	nodeUID     = "00000006-0000-4000-8000-000000000000"
)

func (b *book) web(uid, by string, replicas int, image, metadata string) *booktest.Object {
	b.t.Helper()
	return b.object("deployments", "shop", "web", uid, by, metadata, fmt.Sprintf(
		`,"spec":{"replicas":%d,"template":{"spec":{"containers":[{"name":"log","image":"log:1"},{"name":"web","image":%q}]}}}`, replicas, image))
}

// story returns the record of a quarter of an hour with most kinds of changes.
func story(t testing.TB) *book {
	t.Helper()
	b := newBook(t)
	settings := b.object("configmaps", "shop", "settings", settingsUID, "kubectl", "", `,"data":{"mode":"slow"}`)
	old := b.object("configmaps", "shop", "old", oldUID, "kubectl", "", `,"data":{}`)
	b.listed("configmaps", "first_list", delta.SourceList, delta.Marker{},
		b.Item("configmaps", delta.Sync, delta.SourceList, settings), b.Item("configmaps", delta.Sync, delta.SourceList, old))
	for _, resource := range []string{"deployments", "secrets", "nodes"} {
		b.listed(resource, "first_list", delta.SourceList, delta.Marker{})
	}
	b.at("12:01")
	b.write(delta.Added, "deployments", b.web(webUID, "kubectl-create", 3, "nginx:1.25", ""))
	b.at("12:02")
	b.write(delta.Updated, "deployments", b.web(webUID, "kubectl/scale", 5, "nginx:1.25", ""))
	b.at("12:03")
	b.write(delta.Updated, "deployments", b.web(webUID, "helm", 5, "nginx:1.27", `"labels":{"app":"web"},`))
	b.at("12:04")
	b.write(delta.Updated, "deployments", b.web(webUID, "helm", 5, "nginx:1.27", `"labels":{"app":"web"},`))
	b.at("12:05")
	b.write(delta.Added, "secrets", b.object("secrets", "shop", "creds", credsUID, "kubectl", "", `,"data":{"password":"hmac-sha256:00"}`))
	b.at("12:06")
	b.write(delta.Updated, "secrets", b.object("secrets", "shop", "creds", credsUID, "kubectl", "", `,"data":{"password":"hmac-sha256:01"}`))
	b.write(delta.Added, "nodes", b.object("nodes", "", "worker", nodeUID, "kubelet", "", `,"spec":{}`))
	b.at("12:07")
	b.write(delta.Deleted, "deployments", b.web(webUID, "kubectl", 5, "nginx:1.27", `"labels":{"app":"web"},`))
	b.at("12:08")
	b.write(delta.Added, "deployments", b.web(secondUID, "helm", 1, "nginx:2", ""))
	b.at("12:10")
	b.interrupted("configmaps", delta.CauseExpired, "too old")
	b.at("12:11")
	changed := b.object("configmaps", "shop", "settings", settingsUID, "kubectl", "", `,"data":{"mode":"fast"}`)
	b.listed("configmaps", "expired", delta.SourceRelist, delta.Marker{Changed: 1, Vanished: 1},
		b.Item("configmaps", delta.Sync, delta.SourceRelist, changed), b.Vanished("configmaps", old))
	b.at("12:12")
	b.write(delta.Updated, "deployments", b.web(secondUID, "helm", 2, "nginx:2", ""))
	b.Close()
	b.at("12:20")
	b.Open()
	b.at("12:16") // within the pause
	late := b.Item("deployments", delta.Updated, delta.SourceWatch, b.web(secondUID, "kubectl/scale", 4, "nginx:2", ""))
	late.Occurred = b.Now
	b.at("12:21")
	late.Observed = b.Now
	b.Commit(late)
	return b
}

// answer is the output and exit code of a call of the program.
type answer struct {
	code     int
	out, err string
}

// replayed runs the program on the record.
func (b *book) replayed(t *testing.T, args ...string) answer {
	t.Helper()
	return b.replayedAs(t, b.DB.URL(), args...)
}

func (b *book) replayedAs(t *testing.T, url string, args ...string) answer {
	t.Helper()
	t.Setenv("KUBECONFIG", t.TempDir()+"/none")
	var out, errOut bytes.Buffer
	code := Execute(t.Context(), "replay", append(args, "--database", url), genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut})
	return answer{code: code, out: out.String(), err: errOut.String()}
}

// program returns a command of replay as a separate process, whose environment may differ from that of the tests.
func (b *book) program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	name := filepath.Join(t.TempDir(), env.ProgramName)
	require.NoError(t, os.Symlink(self, name))
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), "REPLAY_DATABASE="+b.DB.URL())
	return cmd
}

// docOf returns an object in canonical form.
func docOf(t testing.TB, text string) patch.Doc {
	t.Helper()
	doc, err := patch.Canonical([]byte(text))
	require.NoError(t, err)
	return doc
}
