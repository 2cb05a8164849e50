package kube

import (
	"errors"
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
			name, subresource := version(test.content[1], test.after).ManagerAfter(func() (patch.Doc, error) {
				return patch.Canonical(version(test.content[0], test.before).JSON)
			})
			require.Equal(t, test.wantName, name)
			require.Equal(t, test.wantThrough, subresource)
		})
	}
}

func TestWhereTimesTellTheVersionBeforeIsNotAskedFor(t *testing.T) {
	o := parse(t, `{"metadata":{"name":"a","managedFields":[{"manager":"x","time":"2026-01-02T00:00:01Z"},{"manager":"y","time":"2026-01-02T00:00:02Z"}]}}`)
	name, _ := o.ManagerAfter(func() (patch.Doc, error) { t.Error("asked"); return nil, nil })
	require.Equal(t, "y", name)

	o = parse(t, `{"metadata":{"name":"a","managedFields":[{"manager":"x","time":"2026-01-02T00:00:01Z"},{"manager":"y"}]}}`)
	name, _ = o.ManagerAfter(func() (patch.Doc, error) { return nil, errors.New("damaged") })
	require.Equal(t, "x", name)
	name, _ = o.ManagerAfter(func() (patch.Doc, error) { return patch.Doc(`{"metadata":{"managedFields":"none"}}`), nil })
	require.Equal(t, "x", name)
}
