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
	s, err := p.sink.Stream(p.Context(), postgres.StreamSpec{Resource: "secrets", Kind: "Secret", Version: "v1", Namespaced: true, Scope: namespace})
	require.NoError(p, err)
	p.streams, p.live = append(p.streams, s), append(p.live, map[string]*thing{})
	p.list(len(p.streams)-1, "first_list")
	return len(p.streams) - 1
}

// TestAListOfTwoStreamsLeadsPastNoEventOfTheOneThatIsBehind has a recorder that was confined to two namespaces.
func TestAListOfTwoStreamsLeadsPastNoEventOfTheOneThatIsBehind(t *testing.T) {
	pen := newPen(t)
	a, b := pen.confined("a"), pen.confined("b")
	live := serveLive(t, pen)
	late := pen.set(a, "a", "late", "l1")
	pen.commit(pen.set(b, "b", "early", "l1"))
	newest := strconv.Itoa(pen.rv)
	all := live.version("/api/v1/secrets")
	require.Equal(t, newest, live.version("/api/v1/namespaces/b/secrets"), "one namespace has one stream")
	pen.commit(late)
	watch := live.watch("/api/v1/secrets?watch=1&resourceVersion=" + all)
	seen := map[string]bool{}
	for range 2 {
		seen[watch.next().Object.Metadata.Name] = true
	}
	require.Equal(t, map[string]bool{"late": true, "early": true}, seen, "it gives once more what was ahead")

	// While a namespace is in a gap, the other goes on. The list that ends the gap ends watches.
	pen.interrupt(a)
	pen.commit(pen.set(b, "b", "early", "l2"))
	all = live.version("/api/v1/secrets")
	require.Equal(t, strconv.Itoa(pen.rv), all)
	watch = live.watch("/api/v1/secrets?watch=1&resourceVersion=" + all)
	pen.list(a, "expired", pen.listed(a, "a", "late", "l3"))
	e := watch.next()
	require.Equal(t, "ERROR", e.Type)
	require.Equal(t, http.StatusGone, e.Object.Code)
}
