package kube

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
)

func TestTheWriterIsTheManagerWhoseEntryTheVersionHasChanged(t *testing.T) {
	const (
		apply     = `{"manager":"apply","operation":"Update","time":"2026-01-02T00:00:01Z","fieldsV1":{"f:spec":{"f:replicas":{},"f:paused":{}}}}`
		lost      = `{"manager":"apply","operation":"Update","time":"2026-01-02T00:00:01Z","fieldsV1":{"f:spec":{"f:paused":{}}}}`
		status    = `{"manager":"controller","operation":"Update","subresource":"status","time":"2026-01-02T00:00:02Z","fieldsV1":{"f:status":{"f:replicas":{}}}}`
		scale     = `{"manager":"autoscaler","operation":"Update","subresource":"scale","fieldsV1":{"f:spec":{"f:replicas":{}}}}`
		setter    = `{"manager":"setter","operation":"Update","time":"2026-01-02T00:00:02Z","fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{}}}}}}`
		setter2   = `{"manager":"setter","operation":"Update","time":"2026-01-02T00:00:02Z","fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"app\"}":{".":{},"f:image":{},"f:env":{}}}}}}`
		annotator = `{"manager":"annotator","operation":"Update","time":"2026-01-02T00:00:02Z","fieldsV1":{"f:metadata":{"f:annotations":{"f:a/b~c":{}}}}}`
	)
	one := [2]string{`"spec":{"replicas":1}`, `"spec":{"replicas":2}`}
	tests := map[string]struct {
		before, after         string
		content               [2]string // of the two versions, but for their metadata
		wantName, wantThrough string
	}{
		"scaled for the first time":         {apply + "," + status, lost + "," + status + "," + scale, one, "autoscaler", "scale"},
		"scaled again":                      {lost + "," + status + "," + scale, lost + "," + status + "," + scale, one, "autoscaler", "scale"},
		"status after a scale":              {lost + "," + scale, lost + "," + scale + "," + status, [2]string{`"status":{}`, `"status":{"replicas":1}`}, "controller", "status"},
		"status twice in a second":          {lost + "," + scale + "," + status, lost + "," + scale + "," + status, [2]string{`"status":{"replicas":1}`, `"status":{"replicas":2}`}, "controller", "status"},
		"status, and a setter in a second":  {status + "," + setter, status + "," + setter, [2]string{`"status":{"replicas":1}`, `"status":{"replicas":2}`}, "controller", "status"},
		"a setter, and status in a second":  {setter + "," + status, setter + "," + status, [2]string{`"spec":{"containers":[{"name":"app","image":"a"}]}`, `"spec":{"containers":[{"name":"app","image":"b"}]}`}, "setter", ""},
		"two managers in one second":        {apply + "," + setter, apply + "," + setter + "," + status, [2]string{`"status":{}`, `"status":{"replicas":1}`}, "controller", "status"},
		"more by one of two, in one second": {setter + "," + status, setter2 + "," + status, [2]string{`"spec":{}`, `"spec":{}`}, "setter", ""},
		"annotated again after a scale":     {lost + "," + annotator + "," + scale, lost + "," + annotator + "," + scale, [2]string{`"metadata":{"annotations":{"a/b~c":"1"}}`, `"metadata":{"annotations":{"a/b~c":"2"}}`}, "annotator", ""},
		"nothing tells: the last":           {status + "," + setter, status + "," + setter, [2]string{`"data":{"a":"1"}`, `"data":{"a":"2"}`}, "setter", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			version := func(content, entries string) *Object {
				metadata := `"metadata":{"name":"a","managedFields":[` + entries + `]`
				if rest, ok := strings.CutPrefix(content, `"metadata":{`); ok {
					return parse(t, `{`+metadata+`,`+rest+`}`)
				}
				return parse(t, `{`+metadata+`},`+content+`}`)
			}
			is := canonical(t, version(test.content[1], test.after))
			was := canonical(t, version(test.content[0], test.before)).Doc()
			change, err := patch.Diff(was, is.Doc())
			require.NoError(t, err)
			name, subresource := is.ManagerAfter(was, change)
			require.Equal(t, test.wantName, name)
			require.Equal(t, test.wantThrough, subresource)
		})
	}
}

// canonical brings an object into the form in which it is recorded.
func canonical(t testing.TB, o *Object) *Object {
	doc, err := patch.Canonical(o.JSON)
	require.NoError(t, err)
	o.SetDoc(doc)
	return o
}

func TestWhereNothingTellsTheNewestTimeDecides(t *testing.T) {
	before := patch.Doc(`{"metadata":{"managedFields":[{"manager":"x"}]}}`)
	o := canonical(t, parse(t, `{"metadata":{"name":"a","managedFields":[{"manager":"x","time":"2026-01-02T00:00:01Z"},{"manager":"y","time":"2026-01-02T00:00:02Z"}]}}`))
	name, _ := o.ManagerAfter(before, []byte(`[{"op":"add","path":"/metadata/managedFields/0/time","value":"2026-01-02T00:00:01Z"}]`))
	require.Equal(t, "y", name, "times tell")

	o = canonical(t, parse(t, `{"metadata":{"name":"a","managedFields":[{"manager":"x","time":"2026-01-02T00:00:01Z"},{"manager":"y"}]}}`))
	name, _ = o.ManagerAfter(before, nil)
	require.Equal(t, "x", name, "there is no patch")
	name, _ = o.ManagerAfter(patch.Doc(`{"metadata":{"managedFields":"none"}}`), []byte(`[{"old":"none","op":"replace","path":"/metadata/managedFields","value":[]}]`))
	require.Equal(t, "x", name, "there were no managers")
}

func BenchmarkManagerAfter(b *testing.B) {
	is := canonical(b, parse(b, string(samplePod(b))))
	for i := range is.ManagedFields {
		is.ManagedFields[i].Time = is.ManagedFields[0].Time
	}
	was, err := patch.Set(is.Doc(), "/status/phase", patch.Doc(`"Pending"`))
	require.NoError(b, err)
	change, err := patch.Diff(was, is.Doc())
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		is.ManagerAfter(was, change)
	}
}
