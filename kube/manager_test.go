package kube

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/patch"
)

func TestTheWriterIsTheManagerWhoseEntryTheVersionHasChanged(t *testing.T) {
	const (
		apply  = `{"manager":"apply","operation":"Update","time":"2026-01-02T00:00:01Z","fieldsV1":{"f:replicas":{},"f:image":{}}}`
		lost   = `{"manager":"apply","operation":"Update","time":"2026-01-02T00:00:01Z","fieldsV1":{"f:image":{}}}`
		status = `{"manager":"controller","operation":"Update","subresource":"status","time":"2026-01-02T00:00:02Z","fieldsV1":{"f:status":{}}}`
		scale  = `{"manager":"autoscaler","operation":"Update","subresource":"scale","fieldsV1":{"f:replicas":{}}}`
		same   = `{"manager":"patcher","operation":"Update","time":"2026-01-02T00:00:02Z","fieldsV1":{"f:image":{}}}`
		same2  = `{"manager":"patcher","operation":"Update","time":"2026-01-02T00:00:02Z","fieldsV1":{"f:image":{},"f:env":{}}}`
	)
	tests := map[string]struct {
		before, after         string
		generations           [2]string
		wantName, wantThrough string
	}{
		"scaled for the first time":         {apply + "," + status, lost + "," + status + "," + scale, [2]string{"1", "2"}, "autoscaler", "scale"},
		"scaled again":                      {lost + "," + status + "," + scale, lost + "," + status + "," + scale, [2]string{"2", "3"}, "autoscaler", "scale"},
		"status after a scale":              {lost + "," + scale, lost + "," + scale + "," + status, [2]string{"2", "2"}, "controller", "status"},
		"status twice in a second":          {lost + "," + scale + "," + status, lost + "," + scale + "," + status, [2]string{"2", "2"}, "controller", "status"},
		"two managers in one second":        {apply + "," + same, apply + "," + same + "," + status, [2]string{"1", "1"}, "controller", "status"},
		"two, and the first in the list":    {status, same + "," + status, [2]string{"1", "2"}, "patcher", ""},
		"more by one of two, in one second": {same + "," + status, same2 + "," + status, [2]string{"1", "2"}, "patcher", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			version := func(generation, entries string) *Object {
				return parse(t, `{"metadata":{"name":"a","generation":`+generation+`,"managedFields":[`+entries+`]}}`)
			}
			name, subresource := version(test.generations[1], test.after).ManagerAfter(func() (patch.Doc, error) {
				return version(test.generations[0], test.before).JSON, nil
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
}
