package replay

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/booktest"
	"github.com/kuberewind/kuberewind/internal/replay/resource"
	"github.com/kuberewind/kuberewind/internal/replay/signals"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// harbour is a record with Pods and a custom resource whose definition changes and is deleted.
type harbour struct{ *book }

var harbourResources = []postgres.StreamSpec{
	{Resource: "pods", Kind: "Pod", Version: "v1", Namespaced: true},
	{Resource: "namespaces", Kind: "Namespace", Version: "v1"},
	{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Kind: "CustomResourceDefinition", Version: "v1"},
	{Group: "example.com", Resource: "widgets", Kind: "Widget", Version: "v1", Namespaced: true},
}

// is writes one delta of an object. text follows its uid and resource version.
func (h *harbour) is(kind delta.Type, resource, name, uid, apiVersion, text string) {
	h.t.Helper()
	h.RV++
	namespace, metadata := "", ""
	objectKind := map[string]string{"pods": "Pod", "namespaces": "Namespace", "customresourcedefinitions": "CustomResourceDefinition", "widgets": "Widget"}[resource]
	if resource == "pods" || resource == "widgets" {
		namespace, metadata = "shop", `"namespace":"shop",`
	}
	doc := docOf(h.t, fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{%s"name":%q,"uid":%q,"resourceVersion":"%d"%s`, apiVersion, objectKind, metadata, name, uid, h.RV, text))
	h.write(kind, resource, &booktest.Object{Namespace: namespace, Name: name, UID: uid, RV: fmt.Sprint(h.RV), Content: doc})
}

func (h *harbour) discovery(widgets string) {
	h.t.Helper()
	group := func(name, version, resources string) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":%q,"resources":[%s]}]}`, name, version, resources)
	}
	resource := func(name, singular, kind, scope, more string) string {
		return fmt.Sprintf(`{"resource":%q,"singularResource":%q,"responseKind":{"kind":%q},"scope":%q,"verbs":["get","list","watch"]%s}`, name, singular, kind, scope, more)
	}
	documents := map[string]string{
		"/api": group("", "v1", resource("pods", "pod", "Pod", "Namespaced", `,"shortNames":["po"],"categories":["all"]`)+","+
			resource("namespaces", "namespace", "Namespace", "Cluster", `,"shortNames":["ns"]`)+","+
			`{"resource":"bindings","singularResource":"binding","responseKind":{"kind":"Binding"},"scope":"Namespaced","verbs":["create"]}`+","+
			resource("secrets", "secret", "Secret", "Namespaced", "")),
		"/apis": group("apiextensions.k8s.io", "v1", resource("customresourcedefinitions", "customresourcedefinition", "CustomResourceDefinition", "Cluster", `,"shortNames":["crd"]`)),
	}
	if widgets != "" {
		documents["/apis"] += "," + group("example.com", widgets, resource("widgets", "widget", "Widget", "Namespaced", `,"shortNames":["wd"],"categories":["all"]`))
	}
	for path, items := range documents {
		text := `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[` + items + `]}`
		require.NoError(h.t, h.Sink.RecordServer(h.t.Context(), path, []byte(text)))
	}
}

const (
	podUID    = "00000011-0000-4000-8000-000000000000"
	podAgain  = "00000012-0000-4000-8000-000000000000"
	otherUID  = "00000013-0000-4000-8000-000000000000"
	widgetUID = "00000014-0000-4000-8000-000000000000"
	crdUID    = "00000015-0000-4000-8000-000000000000"
	nsUID     = "00000016-0000-4000-8000-000000000000"
	ownerUID  = "00000017-0000-4000-8000-000000000000"
)

const webPod = `,"creationTimestamp":"2026-03-10T11:50:00Z","labels":{"app":"web"},"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"` + ownerUID + `"}]},
	"spec":{"nodeName":"worker-1","containers":[{"name":"c","image":"i"}]},
	"status":{"phase":"Running","containerStatuses":[{"name":"c","ready":true,"restartCount":3,"image":"i","imageID":"","state":{"running":{"startedAt":"2026-03-10T11:59:00Z"}},
	"lastState":{"terminated":{"exitCode":1,"finishedAt":"2026-03-10T11:59:00Z"}}}]}}`

func newHarbour(t *testing.T) *harbour {
	t.Helper()
	h := &harbour{newBook(t)}
	for _, spec := range harbourResources {
		h.Follow(spec)
		h.listed(spec.Resource, "first_list", delta.SourceList, delta.Marker{})
	}
	definition := func(version, column, path string) string {
		return `},"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[{"name":"` + version + `","served":true,"storage":true,
			"selectableFields":[{"jsonPath":".spec.size"}],
			"additionalPrinterColumns":[{"name":"` + column + `","type":"string","jsonPath":"` + path + `"},{"name":"Seen","type":"date","jsonPath":".status.seen"}]}]}}`
	}
	h.discovery("v1")
	h.at("12:01")
	h.is(delta.Added, "namespaces", "shop", nsUID, "v1", `}}`)
	h.is(delta.Added, "customresourcedefinitions", "widgets.example.com", crdUID, "apiextensions.k8s.io/v1", definition("v1", "Size", ".spec.size"))
	h.at("12:02")
	h.is(delta.Added, "pods", "web", podUID, "v1", webPod)
	h.is(delta.Added, "pods", "other", otherUID, "v1", `,"creationTimestamp":"2026-03-10T12:02:00Z"},"spec":{"containers":[]},"status":{"phase":"Pending"}}`)
	h.at("12:03")
	h.is(delta.Added, "widgets", "big", widgetUID, "example.com/v1", `},"spec":{"size":"large"},"status":{"seen":"2026-03-10T12:00:00Z"}}`)
	h.at("12:05")
	h.is(delta.Updated, "customresourcedefinitions", "widgets.example.com", crdUID, "apiextensions.k8s.io/v1", definition("v2", "Colour", ".spec.colour"))
	h.is(delta.Updated, "widgets", "big", widgetUID, "example.com/v2", `},"spec":{"colour":"red"},"status":{"seen":"2026-03-10T12:00:00Z"}}`)
	h.discovery("v2")
	h.at("12:10")
	h.is(delta.Deleted, "pods", "web", podUID, "v1", webPod)
	h.is(delta.Added, "pods", "web", podAgain, "v1", strings.Replace(webPod, "11:50", "12:10", 1))
	h.at("12:20")
	h.is(delta.Deleted, "widgets", "big", widgetUID, "example.com/v2", `},"spec":{"colour":"red"},"status":{"seen":"2026-03-10T12:00:00Z"}}`)
	h.is(delta.Deleted, "customresourcedefinitions", "widgets.example.com", crdUID, "apiextensions.k8s.io/v1", definition("v2", "Colour", ".spec.colour"))
	h.discovery("")
	h.at("12:30")
	h.is(delta.Updated, "namespaces", "shop", nsUID, "v1", `,"labels":{"team":"sales"}}}`)
	return h
}

// at returns an instant on the day of the book.
func at(clock string) string { return "2026-03-10T" + clock + ":00Z" }

func TestGetShowsAnInstantAsKubectlWouldHaveShownIt(t *testing.T) {
	h := newHarbour(t)
	for _, c := range []struct{ question, want string }{
		{"pods -n shop --at " + at("12:04"), "NAME    READY   STATUS    RESTARTS       AGE\nother   0/0     Pending   0              2m\nweb     1/1     Running   3 (5m ago)     14m\n"},
		{"po -n shop web --at " + at("12:10"), "NAME   READY   STATUS    RESTARTS       AGE\nweb    1/1     Running   3 (11m ago)   0s\n"},
		{"pods -A --index node=worker-1 -o name --at " + at("12:04"), "pod/web\n"},
		{"pods -A --index owner=" + ownerUID + " -o name --at " + at("12:04"), "pod/web\n"},
		{"pods -A --index label=app=web --index node=worker-1 -o name --at " + at("12:04"), "pod/web\n"},
		{"pods -A --index uid=" + otherUID + " -o name --at " + at("12:04"), "pod/other\n"},
		{"pods -A --index node=worker-2 -o name --at " + at("12:04"), ""},
		{"pods -n shop --field-selector status.phase!=Running -o name --at " + at("12:04"), "pod/other\n"},
		{"wd -n shop --at " + at("12:04"), "NAME   SIZE    SEEN\nbig    large   4m\n"},
		{"wd -n shop --at " + at("12:06"), "NAME   COLOUR   SEEN\nbig    red      6m\n"},
		{"wd -n shop --field-selector spec.size=large -o name --at " + at("12:04"), "widget.example.com/big\n"},
		{"all -n shop -o name --at " + at("12:04"), "pod/other\npod/web\nwidget.example.com/big\n"},
		{"pods/web ns/shop -n shop -o name --at " + at("12:04"), "pod/web\nnamespace/shop\n"},
		{"pods -n shop web -o jsonpath={.metadata.uid} --at " + at("12:09"), podUID},
		{"pods -n shop web -o jsonpath={.metadata.uid} --at now", podAgain},
		{"pods -n shop -o jsonpath={.items[*].metadata.resourceVersion} --at rv:103", "103"},
		{"widgets -n shop --at " + at("12:25"), ""},
		{"pods -n shop web -o custom-columns=NAME:.metadata.name,NONE:.spec.nothing --at " + at("12:04"), "NAME   NONE\nweb    <none>\n"},
	} {
		got := h.replayed(t, append([]string{"get"}, strings.Fields(c.question)...)...)
		require.Zero(t, got.code, "%s: %s", c.question, got.err)
		require.Equal(t, unpadded(c.want), unpadded(got.out), c.question)
	}
}

// unpadded returns a table without padding.
func unpadded(table string) string {
	var lines []string
	for line := range strings.SplitSeq(table, "\n") {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(lines, "\n")
}

func TestAnErrorSaysWhatToDo(t *testing.T) {
	h := newHarbour(t)
	for _, c := range []struct{ question, want string }{
		{"pods --at soon", "a time before now (10m, 2d12h ago), Unix seconds, seq:N, rv:N or now"},
		{"pods --at 2026-03-09T00:00:00Z", "error: 2026-03-09T00:00:00Z is before the record began, at 2026-03-10T12:01:00Z"},
		{"pots", `the server doesn't have a resource type "pots"; did you mean pods?`},
		{"wd --at " + at("12:25"), `the server doesn't have a resource type "wd"`},
		{"bindings", "does not support list and watch for them, so they cannot be recorded"},
		{"pods --index color=red", `unknown index "color"; use one of label, namespace, node, owner, uid`},
		{"pods --index node", "is not of the form name=value"},
		{"pods -o table", "allowed formats are:"},
		{"pods -o custom-columns=NAME", "custom-columns"},
		{"pods --field-selector spec.color=red", "field label not supported: spec.color"},
		{"pods -l =a", "found '='"},
		{"pods nobody -n shop", `Error from server (NotFound): pods "nobody" not found`},
		{"pods nobody -n nowhere", `Error from server (NotFound): namespaces "nowhere" not found`},
		{"pods,widgets web", "a name needs one type"},
		{"pods/web widgets", `"widgets" is not TYPE/NAME like the other arguments`},
		{"pods/", `"pods/" is not TYPE/NAME: use one type, one slash, one name`},
		{"pods,", `the server doesn't have a resource type ""`},
		{"", "name a type of resource to get"},
		{"pods --cluster other", "it holds test"},
		{"pods --nonsense", "See 'replay get --help' for usage"},
	} {
		got := h.replayed(t, append([]string{"get"}, strings.Fields(c.question)...)...)
		require.Equal(t, 1, got.code, c.question)
		require.Empty(t, got.out, c.question)
		require.Contains(t, got.err, c.want, c.question)
	}
}

func TestGetNamesADamagedObjectAndShowsTheOthers(t *testing.T) {
	h := newHarbour(t)
	var seq int64
	require.NoError(t, h.DB.Pool(t).QueryRow(t.Context(), `UPDATE kuberewind.deltas_data SET object = replace(object::text, 'worker-1', 'worker-9')::json
		WHERE object::text LIKE '%worker-1%' AND object::text LIKE '%11:50%' RETURNING seq`).Scan(&seq))
	got := h.replayed(t, "get", "pods", "-n", "shop", "-o", "name", "--at", at("12:04"))
	require.Equal(t, 1, got.code)
	require.Equal(t, "pod/other\n", got.out)
	require.Contains(t, got.err, fmt.Sprintf("seq %d of pods shop/web is damaged", seq))
	got = h.replayed(t, "get", "pods", "web", "-n", "shop", "--at", at("12:04"))
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, fmt.Sprintf("seq %d", seq), "the error does not say that the object did not exist")
	got = h.replayed(t, "get", "pods", "-n", "shop", "-o", "name", "--at", "now")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "pod/other\npod/web\n", got.out, "the second life is not damaged")
	got = h.replayed(t, "snapshot", "--at", at("12:04"), "--format", "json")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, otherUID)
	require.NotContains(t, got.out, podUID)
}

func TestAnAuditorMayReadAndAnotherLoginLearnsHowToGetTheRight(t *testing.T) {
	h := newHarbour(t)
	got := h.replayedAs(t, h.DB.Login(t, "kuberewind_auditor"), "get", "pods", "-A", "-o", "name", "--at", at("12:04"))
	require.Zero(t, got.code, got.err)
	require.Equal(t, "pod/other\npod/web\n", got.out)
	got = h.replayedAs(t, h.DB.Login(t), "get", "pods", "-A")
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "GRANT kuberewind_auditor TO")
}

func TestASignalEndsACommand(t *testing.T) {
	h := newHarbour(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(&signals.Signal{Name: "SIGINT", Code: 130})
	var out bytes.Buffer
	code := Execute(ctx, "replay", []string{"get", "pods", "-A", "--database", h.DB.URL()}, genericiooptions.IOStreams{Out: &out, ErrOut: &out})
	require.Equal(t, 130, code)
	require.Empty(t, out.String())
}

func TestASnapshotForApplyFitsAnotherCluster(t *testing.T) {
	h := newHarbour(t)
	got := h.replayed(t, "snapshot", "--at", at("12:04"), "--for-apply")
	require.Zero(t, got.code, got.err)
	items := got.out[strings.Index(got.out, "items:"):]
	require.Less(t, strings.Index(items, "kind: Namespace"), strings.Index(items, "kind: CustomResourceDefinition"))
	require.Less(t, strings.Index(items, "kind: CustomResourceDefinition"), strings.Index(items, "kind: Widget"))
	for _, gone := range []string{"uid:", "resourceVersion:", "status:", "ownerReferences:", "creationTimestamp:", "nodeName:"} {
		require.NotContains(t, items, gone)
	}
	require.Contains(t, got.err, "apply twice")
}

func TestASnapshotOfManyNamesReportsMissingNames(t *testing.T) {
	h := newHarbour(t)
	args := []string{"snapshot", "-n", "shop", "--at", at("12:04"), "pods", "web"}
	for n := range resource.MaxNames {
		args = append(args, fmt.Sprintf("none-%d", n))
	}
	got := h.replayed(t, args...)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.out, podUID)
	require.NotContains(t, got.out, otherUID)
	require.Equal(t, resource.MaxNames, strings.Count(got.err, "did not exist at"), got.err)
	require.Zero(t, h.replayed(t, "snapshot", "-n", "shop", "--at", at("12:04"), "pods/web").code)
}

func TestAnUnreadableKubeconfigIsIgnoredIfANamespaceIsNamed(t *testing.T) {
	h := newHarbour(t)
	broken := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(broken, []byte("no kubeconfig"), 0o600))
	for _, c := range []struct{ question, want string }{
		{"get pods -A -o name --at " + at("12:04"), "pod/other\npod/web\n"},
		{"get pods -n shop -o name --at " + at("12:04"), "pod/other\npod/web\n"},
		{"diff -A pods -o name --from " + at("12:04") + " --to " + at("12:04"), ""},
		{"log -n shop deployments --since " + at("12:04") + " --until " + at("12:04"), ""},
	} {
		got := h.replayed(t, append(strings.Fields(c.question), "--kubeconfig", broken)...)
		require.Zero(t, got.code, "%s: %s", c.question, got.err)
		require.Equal(t, c.want, got.out, c.question)
	}
	got := h.replayed(t, "get", "pods", "--kubeconfig", broken)
	require.Equal(t, 1, got.code)
	require.Contains(t, got.err, "name one with -n, or use -A")
}

func TestASnapshotReportsObjectsThatItCannotWrite(t *testing.T) {
	h := newHarbour(t)
	full := t.TempDir()
	require.Zero(t, h.replayed(t, "snapshot", "-o", full, "pods").code)
	for _, c := range []struct{ question, want string }{
		{"-o " + full, "is not empty: name another directory, or use --force"},
		{"--format zip", "use one of yaml (or list), json, files, tar"},
		{"--format files", "needs a directory"},
		{"--hashed-secrets", "needs --for-apply"},
		{"-o /nowhere/at/all.tar", "no such file or directory"},
		{"-l =a", "--selector"},
	} {
		got := h.replayed(t, append([]string{"snapshot"}, strings.Fields(c.question)...)...)
		require.Equal(t, 1, got.code, c.question)
		require.Empty(t, got.out)
		require.Contains(t, got.err, c.want, c.question)
	}
	require.Zero(t, h.replayed(t, "snapshot", "-o", full, "--force").code)
}
