package evidence_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/evidence"
	"github.com/kuberewind/kuberewind/patch"
)

// observed is the live observation in all tests.
var observed = time.Date(2026, 1, 2, 0, 0, 9, 500_000_000, time.UTC)

// applied returns an entry of a server-side apply.
func applied(name, second, fields string) string {
	return strings.Replace(by(name, second, fields), `"Update"`, `"Apply"`, 1)
}

// by returns an entry of managedFields. If second is "", the entry has no time, as only the subresource scale writes it.
func by(name, second, fields string) string {
	name, subresource, _ := strings.Cut(name, "/")
	if second != "" {
		second = fmt.Sprintf(`,"time":"2026-01-02T00:00:%sZ"`, second)
	}
	return fmt.Sprintf(`{"manager":%q,"subresource":%q,"operation":"Update","apiVersion":"v1"%s,"fieldsV1":%s}`, name, subresource, second, fields)
}

func object(t testing.TB, entries []string, metadata, rest string) patch.Doc {
	t.Helper()
	doc, err := patch.Canonical(fmt.Appendf(nil, `{"metadata":{%s"managedFields":[%s]}%s}`, metadata, strings.Join(entries, ","), rest))
	require.NoError(t, err)
	return doc
}

func updated(t testing.TB, before, after patch.Doc) evidence.Version {
	t.Helper()
	change, err := patch.Diff(before, after)
	require.NoError(t, err)
	return evidence.Version{Type: "Updated", Source: "watch", Live: true, Observed: observed, Before: before, After: after, Patch: change}
}

// said returns a verdict as a log would print it.
func said(v evidence.Verdict) string {
	by := v.Manager
	if v.Subresource != "" {
		by += "/" + v.Subresource
	}
	how := map[evidence.Evidence]string{evidence.Entry: "entry", evidence.Owner: "owner", evidence.None: "none"}[v.Evidence]
	if v.Hint != "" {
		how += " " + v.Hint + "?"
	}
	return strings.TrimSpace(by + " " + how)
}

const (
	replicas = `{"f:spec":{"f:replicas":{}}}`
	paused   = `{"f:spec":{"f:paused":{}}}`
	both     = `{"f:spec":{"f:paused":{},"f:replicas":{}}}`
	status   = `{"f:status":{"f:ready":{}}}`
	images   = `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:name":{}}}}}`
	envs     = `{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{"f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}}}}}`
	label    = `{"f:metadata":{"f:labels":{"f:x":{}}}}`
	ready    = `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:status":{},"f:type":{}}}}}`
	final    = `{"f:metadata":{"f:finalizers":{".":{},"v:\"a\"":{}}}}`
)

// A versions case holds two versions of an object: the entries, the other metadata, and the rest of the object.
type versions struct {
	before, after         []string
	metaBefore, metaAfter string
	restBefore, restAfter string
	want                  string
}

func (v versions) judged(t *testing.T) string {
	t.Helper()
	return said(evidence.Judge(updated(t, object(t, v.before, v.metaBefore, v.restBefore), object(t, v.after, v.metaAfter, v.restAfter))))
}

func check(t *testing.T, cases map[string]versions) {
	t.Helper()
	for name, v := range cases {
		t.Run(name, func(t *testing.T) { require.Equal(t, v.want, v.judged(t)) })
	}
}

const one, two = `,"spec":{"replicas":1}`, `,"spec":{"replicas":2}`

func TestTheOneEntryThatChangedProvesTheWriter(t *testing.T) {
	a, s := by("apply", "01", both), by("ctrl/status", "05", status)
	check(t, map[string]versions{
		"new and later":                    {before: []string{a}, after: []string{by("apply", "01", paused), by("set", "06", replicas)}, restBefore: one, restAfter: two, want: "set entry"},
		"a later time":                     {before: []string{a, s}, after: []string{by("apply", "09", both), s}, restBefore: one, restAfter: two, want: "apply entry"},
		"the same time, took a path":       {before: []string{a, by("set", "05", paused)}, after: []string{by("apply", "01", paused), by("set", "05", both)}, restBefore: one, restAfter: two, want: "set entry"},
		"scaled first, without a time":     {before: []string{a, s}, after: []string{by("apply", "01", paused), s, by("kubectl/scale", "", replicas)}, restBefore: one, restAfter: two, want: "kubectl/scale entry"},
		"two candidates":                   {before: []string{a}, after: []string{by("x", "06", replicas), by("y", "06", replicas)}, restBefore: one, restAfter: two, want: "none"},
		"the same time, took nothing":      {before: []string{by("set", "05", paused)}, after: []string{by("set", "05", both)}, restBefore: `,"spec":{"x":1}`, restAfter: `,"spec":{"x":2}`, want: "none"},
		"an earlier time":                  {before: []string{by("apply", "07", both)}, after: []string{by("apply", "06", paused)}, restBefore: one, restAfter: two, want: "none"},
		"new, but earlier than before":     {before: []string{s}, after: []string{s, by("stale", "02", replicas)}, restBefore: one, restAfter: two, want: "none"},
		"a stale file put back":            {before: []string{by("set", "05", replicas)}, after: []string{by("old", "01", paused), by("replace", "09", replicas)}, restBefore: two, restAfter: one, want: "replace entry"},
		"a scale entry put back":           {before: []string{s}, after: []string{s, by("kubectl/scale", "", replicas)}, restBefore: `,"a":1,"spec":{"replicas":1}`, restAfter: `,"a":2,"spec":{"replicas":1}`, want: "none"},
		"first apply":                      {after: []string{by("before-first-apply", "09", paused), by("kubectl", "09", replicas)}, restBefore: one, restAfter: two, want: "kubectl entry"},
		"the server alone":                 {after: []string{by("before-first-apply", "09", replicas)}, restBefore: one, restAfter: two, want: "none"},
		"merged as ancient":                {before: []string{a, s}, after: []string{by("ancient-changes", "05", both), by("m12", "09", replicas)}, restBefore: one, restAfter: two, want: "m12 entry"},
		"nothing but its ownership":        {before: []string{a}, after: []string{a, applied("ssa", "09", replicas)}, restBefore: one, restAfter: one, want: "none"},
		"a file put back in that second":   {before: []string{by("maker", "09", paused), by("replace", "09", replicas)}, after: []string{by("maker", "09", both)}, restBefore: one, restAfter: one, want: "none"},
		"a former owner put back":          {before: []string{by("maker", "01", both)}, after: []string{by("maker", "01", paused), applied("owner", "05", replicas)}, metaBefore: `"labels":{"x":"1"},`, restBefore: one, restAfter: one, want: "none"},
		"an apply that only removes":       {before: []string{a, applied("ssa", "05", both)}, after: []string{a, applied("ssa", "09", replicas)}, restBefore: `,"spec":{"paused":true}`, restAfter: `,"spec":{}`, want: "ssa entry"},
		"such an apply, long ago":          {before: []string{a, applied("ssa", "05", both)}, after: []string{a, applied("ssa", "06", replicas)}, restBefore: `,"spec":{"paused":true}`, restAfter: `,"spec":{}`, want: "none"},
		"later, and owns nothing of it":    {before: []string{by("x", "05", paused)}, after: []string{by("x", "09", paused)}, restBefore: one, restAfter: two, want: "none"},
		"a Scale sent back, of two names":  {before: []string{by("create", "", replicas), by("create", "09", paused), s}, after: []string{by("create", "09", paused), s}, restBefore: one, restAfter: two, want: "none"},
		"an entry without a name":          {before: []string{a}, after: []string{a, by("", "09", replicas)}, restBefore: one, restAfter: two, want: "none"},
		"managedFields that are no list":   {restBefore: one, restAfter: two, want: "none"},
		"reset, then a stale file removes": {after: []string{by("old", "01", paused)}, metaBefore: `"labels":{"x":"1"},`, want: "none"},
	})
}

func TestTheSecondProvesTheOwnerOfEveryWrittenField(t *testing.T) {
	a, s := by("apply", "01", both), by("ctrl/status", "09", status)
	app, conditions := by("set", "09", images), by("kubelet/status", "09", ready)
	const first, second = `,"status":{"ready":1}`, `,"status":{"ready":2}`
	list := func(name, image string) string {
		return fmt.Sprintf(`,"spec":{"containers":[{"name":"app","image":"a"},{"name":%q,"image":%q}]}`, name, image)
	}
	same := func(restBefore, restAfter, want string, entries ...string) versions {
		return versions{before: entries, after: entries, restBefore: restBefore, restAfter: restAfter, want: want}
	}
	check(t, map[string]versions{
		"it owns the path":            same(first, second, "ctrl/status owner", a, s),
		"its element of a list":       same(`,"spec":{"containers":[{"name":"app","image":"a"}]}`, `,"spec":{"containers":[{"name":"app","image":"b"}]}`, "set owner", app),
		"another element of the list": same(list("proxy", "a"), list("proxy", "b"), "none", app),
		"an element was added":        same(`,"status":{"conditions":[{"type":"Ready","status":"True"}]}`, `,"status":{"conditions":[{"type":"Ready","status":"True"},{"type":"DisruptionTarget","status":"True"}]}`, "none", conditions),
		"a path it does not own":      same(`,"status":{"ready":1,"x":1}`, `,"status":{"ready":2,"x":2}`, "none", s),
		"a path was removed":          same(`,"status":{"ready":1,"x":1}`, `,"status":{"ready":2}`, "none", s),
		"two owners":                  same(first, second, "none", by("x", "09", status), by("y", "09", status)),
		"not the newest":              same(one, two, "none", by("x", "08", both), s),
		"an old second":               same(first, second, "none", by("x", "07", status)),
		"scaled again, no time":       same(one, two, "none", a, by("kubectl/scale", "", replicas)),
		"an eviction":                 same(`,"status":{"conditions":[{"status":"True","type":"DisruptionTarget"}]}`, `,"status":{"conditions":[{"status":"False","type":"DisruptionTarget"}]}`, "none", by("kubelet/status", "09", strings.ReplaceAll(ready, "Ready", "DisruptionTarget"))),
		"put into an empty map":       {before: []string{by("x", "09", `{"f:metadata":{"f:labels":{}}}`)}, after: []string{by("x", "09", `{"f:metadata":{"f:labels":{}}}`)}, metaBefore: `"labels":{},`, metaAfter: `"labels":{"zone":"a"},`, want: "none"},
		"the other value of a set":    {before: []string{by("x", "09", final)}, after: []string{by("x", "09", final)}, metaBefore: `"finalizers":["a"],`, metaAfter: `"finalizers":["a","foregroundDeletion"],`, want: "none"},
		"nothing but the generation":  {before: []string{s}, after: []string{s}, metaBefore: `"generation":1,`, metaAfter: `"generation":2,`, want: "none"},
	})
}

func TestTheOwnerOfARemovedFieldIsAHint(t *testing.T) {
	a := by("apply", "01", both)
	labelled := func(before, after []string, want string) versions {
		return versions{before: before, after: after, metaBefore: `"labels":{"x":"1"},`, want: want}
	}
	check(t, map[string]versions{
		"it vanished":                labelled([]string{a, by("kubectl-label", "05", label)}, []string{a}, "none kubectl-label?"),
		"a reset":                    labelled([]string{a, by("kubectl-label", "05", label)}, nil, "none"),
		"it owned something else":    labelled([]string{a, by("set", "05", status)}, []string{a}, "none"),
		"it stays":                   labelled([]string{by("x", "05", `{"f:metadata":{"f:labels":{"f:x":{}}},"f:spec":{"f:paused":{}}}`)}, []string{by("x", "05", paused)}, "none"),
		"the server made it":         labelled([]string{a, by("ancient-changes", "05", label)}, []string{a}, "none"),
		"nothing was removed":        {before: []string{a, by("x", "05", label)}, after: []string{a}, restBefore: one, restAfter: two, want: "none"},
		"a variable, env A-":         {before: []string{a, by("kubectl-set", "05", envs)}, after: []string{a}, restBefore: `,"spec":{"containers":[{"name":"app","env":[{"name":"A","value":"1"},{"name":"B","value":"1"}]}]}`, restAfter: `,"spec":{"containers":[{"name":"app","env":[{"name":"B","value":"1"}]}]}`, want: "none kubectl-set?"},
		"a writer that took nothing": labelled([]string{by("kubectl-label", "05", label)}, []string{by("edit", "09", paused)}, "none kubectl-label?"),
	})
}

// In these cases, W1 to W6, a naive judge takes the newest entry for the writer.
func TestAWriteWithoutAnEntryHasNoWriter(t *testing.T) {
	scaled := []string{by("apply", "01", both), by("kubectl/scale", "", replicas), by("ctrl/status", "09", status)}
	const pod = `,"spec":{"replicas":1}`
	check(t, map[string]versions{
		"a field removed after a scale": {before: scaled, after: scaled, restBefore: `,"spec":{"replicas":1,"x":1}`, restAfter: pod, want: "none"},
		"a binding":                     {before: scaled, after: scaled, restBefore: pod, restAfter: `,"spec":{"nodeName":"node-3","replicas":1}`, want: "none"},
		"a delete request":              {before: scaled, after: scaled, metaAfter: `"deletionTimestamp":"2026-01-02T00:00:39Z","deletionGracePeriodSeconds":30,`, want: "none"},
		"a finalizer removed":           {before: scaled, after: scaled, metaBefore: `"finalizers":["a"],`, want: "none"},
		"uncordon":                      {before: scaled, after: scaled, restBefore: `,"spec":{"unschedulable":true}`, restAfter: `,"spec":{}`, want: "none"},
		"writers without fields":        {restBefore: one, restAfter: two, want: "none"},
	})
}

func TestAnAddedFromAWatchNamesItsOnlyEntry(t *testing.T) {
	for want, entries := range map[string][]string{
		"x entry": {by("x", "01", both)},
		"none":    {by("x", "01", both), by("y", "01", status)},
	} {
		v := evidence.Version{Type: "Added", Source: "watch", After: object(t, entries, "", one)}
		require.Equal(t, want, said(evidence.Judge(v)))
	}
	for _, entries := range [][]string{nil, {by("ancient-changes", "01", both)}, {`1`}} {
		require.Equal(t, "none", said(evidence.Judge(evidence.Version{Type: "Added", Source: "watch", After: object(t, entries, "", one)})))
	}
}

func TestAVersionThatCannotBeJudgedHasNoWriter(t *testing.T) {
	after := object(t, []string{by("x", "09", both)}, "", two)
	proved := updated(t, object(t, []string{by("x", "08", both)}, "", one), after)
	require.Equal(t, "x entry", said(evidence.Judge(proved)))
	for name, change := range map[string]func(*evidence.Version){
		"Deleted":               func(v *evidence.Version) { v.Type = "Deleted" },
		"Sync":                  func(v *evidence.Version) { v.Type = "Sync" },
		"from a list":           func(v *evidence.Version) { v.Source = "relist" },
		"in an open gap":        func(v *evidence.Version) { v.InGap = true },
		"without a patch":       func(v *evidence.Version) { v.Patch = nil },
		"a first row, no Added": func(v *evidence.Version) { v.Before, v.Patch = nil, nil },
	} {
		v := proved
		change(&v)
		require.Equal(t, evidence.Verdict{Evidence: evidence.None}, evidence.Judge(v), name)
	}
}

func TestOnlyALiveObservationProvesAnOwner(t *testing.T) {
	entries := []string{by("x", "09", both)}
	v := updated(t, object(t, entries, "", one), object(t, entries, "", two))
	require.Equal(t, "x owner", said(evidence.Judge(v)))
	v.Live = false
	require.Equal(t, "none", said(evidence.Judge(v)), "recovered after a pause")
}

func BenchmarkJudge(b *testing.B) {
	kubelet := func(second string) []string {
		return []string{by("apply", "01", both), by("kubelet/status", second, ready)}
	}
	rest := func(status string) string {
		return `,"spec":{"filler":"` + strings.Repeat("x", 4000) + `"},"status":{"conditions":[{"status":"` + status + `","type":"Ready"}]}`
	}
	for name, after := range map[string]string{"entry": "09", "owner": "08"} {
		b.Run(name, func(b *testing.B) {
			v := updated(b, object(b, kubelet("08"), "", rest("False")), object(b, kubelet(after), "", rest("True")))
			require.Equal(b, "kubelet/status "+name, said(evidence.Judge(v)))
			b.ReportAllocs()
			for b.Loop() {
				evidence.Judge(v)
			}
		})
	}
}
