package apiserver_test

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/sink/postgres"
)

// confined adds a stream of the secrets of a namespace.
func (p *pen) confined(namespace string) (stream int) {
	p.Helper()
	return p.follow(postgres.StreamSpec{Resource: "secrets", Kind: "Secret", Version: "v1", Namespaced: true, Scope: namespace})
}

func TestAListOfTwoStreamsHasTheOldestOfTheirPositions(t *testing.T) {
	pen := newPen(t)
	a, b := pen.confined("a"), pen.confined("b")
	live := serveLive(t, pen)
	pen.commit(pen.set(a, "a", "one", "l1"))
	oldest := strconv.Itoa(pen.RV)
	pen.interrupt(a)
	pen.commit(pen.set(b, "b", "two", "l1"))
	require.Equal(t, oldest, live.version("/api/v1/secrets"), "of the stream that is interrupted")
	require.Equal(t, oldest, live.version("/api/v1/secrets?resourceVersion=0"))
	require.Equal(t, oldest, live.version("/api/v1/namespaces/a/secrets"))
	require.Equal(t, strconv.Itoa(pen.RV), live.version("/api/v1/namespaces/b/secrets"))
	require.Equal(t, oldest, live.version("/api/v1/namespaces/other/secrets"), "it is not on record")
}

func TestTwoStreamsAreWatchedByNamespace(t *testing.T) {
	pen := newPen(t)
	a, b := pen.confined("a"), pen.confined("b")
	live := serveLive(t, pen)
	pen.commit(pen.set(b, "b", "two", "l1"))
	rv := strconv.Itoa(pen.RV)
	for _, query := range []string{
		"watch=1", "watch=1&resourceVersion=" + rv, "watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true",
		"resourceVersion=" + rv, "resourceVersion=" + rv + "&resourceVersionMatch=Exact",
	} {
		for _, path := range []string{"/api/v1/secrets", "/api/v1/namespaces/other/secrets"} {
			status := live.status(http.MethodGet, path+"?timeoutSeconds=1&"+query)
			require.EqualValues(t, http.StatusBadRequest, status.Code, query)
			require.Contains(t, status.Message, "watch them in one namespace (a, b), or list them without a resource version", query)
		}
	}
	watch := live.watch("/api/v1/namespaces/b/secrets?watch=1&resourceVersion=" + rv)
	pen.interrupt(a)
	pen.list(a, "expired", pen.listed(a, "a", "one", "l1"))
	pen.commit(pen.set(b, "b", "two", "l2"))
	require.Equal(t, "two", watch.next().Object.Metadata.Name, "the gap of another namespace is none of its own")
	require.Equal(t, "two", live.watch("/api/v1/namespaces/b/secrets?watch=1&resourceVersion="+rv).next().Object.Metadata.Name)
}
