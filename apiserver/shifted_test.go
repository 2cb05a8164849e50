package apiserver_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kuberewind/kuberewind/apiserver"
)

var timeText = regexp.MustCompile(`"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"`)

// moved returns a text in which each time that a shifted answer can shift is shifted.
func moved(text string, by time.Duration) string {
	return timeText.ReplaceAllStringFunc(text, func(quoted string) string {
		layout := time.RFC3339
		if strings.Contains(quoted, ".") {
			layout = "2006-01-02T15:04:05.000000Z07:00"
		}
		at, err := time.Parse(layout, strings.Trim(quoted, `"`))
		if err != nil {
			return quoted
		}
		return `"` + at.Add(by).Format(layout) + `"`
	})
}

func TestAShiftedRootShiftsOnlyTimes(t *testing.T) {
	p := serve(t)
	shifted := "~" + apiserver.Shifted(p.root)
	for _, path := range []string{
		"/api/v1/pods", "/api/v1/events", "/apis/apps/v1/deployments", "/api/v1/nodes", "/apis/coordination.k8s.io/v1/leases", "/apis/example.com/v1/certificates",
		"/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "/apis/apiregistration.k8s.io/v1/apiservices", "/apis/events.k8s.io/v1/events",
		"/api/v1/nodes/node-001", "/api/v1/pods?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=3",
	} {
		code, header, exact := p.ask(http.MethodGet, path)
		require.Equal(t, http.StatusOK, code, exact)
		require.Empty(t, header.Get(apiserver.ShiftedHeader))
		code, header, got := p.ask(http.MethodGet, shifted+path)
		require.Equal(t, http.StatusOK, code, got)
		by, err := time.ParseDuration(header.Get(apiserver.ShiftedHeader))
		require.NoError(t, err)
		require.NotZero(t, by)
		near := []string{moved(exact, by-time.Second), moved(exact, by), moved(exact, by+time.Second)} // a new second may have begun
		require.Contains(t, near, got, path)
	}
}

func TestTheEndOfTheRecordHasAShiftedForm(t *testing.T) {
	p := serve(t)
	code, header, body := p.ask(http.MethodGet, "~"+apiserver.Shifted(apiserver.LivePath(p.record.Cluster().UID))+"/api/v1/pods")
	require.Equal(t, http.StatusOK, code, body)
	require.NotEmpty(t, header.Get(apiserver.ShiftedHeader))
}

func TestATableOfAShiftedRootComputesAgesAtTheInstant(t *testing.T) {
	p := serve(t)
	const table = "application/json;as=Table;v=v1;g=meta.k8s.io"
	read := func(path string) (made metav1.Table) {
		code, _, body := p.ask(http.MethodGet, path+"/api/v1/pods", "Accept", table)
		require.Equal(t, http.StatusOK, code)
		require.NoError(t, json.Unmarshal([]byte(body), &made))
		return made
	}
	exact, shifted := read("~"+p.root), read("~"+apiserver.Shifted(p.root))
	require.NotEmpty(t, exact.Rows)
	for i := range exact.Rows {
		require.Equal(t, exact.Rows[i].Cells, shifted.Rows[i].Cells)
		var object unstructured.Unstructured
		require.NoError(t, json.Unmarshal(shifted.Rows[i].Object.Raw, &object.Object))
		require.Less(t, time.Since(object.GetCreationTimestamp().Time), time.Hour, "it was not an hour old")
	}
}
