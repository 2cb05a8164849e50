package api

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// serving is a server that answers everything with a text.
func serving(t *testing.T, text string) *target {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "identity" {
			w.WriteHeader(http.StatusNotAcceptable)
			return
		}
		fmt.Fprint(w, text)
	}))
	t.Cleanup(server.Close)
	return &target{name: "a server", url: server.URL, origin: server.URL, pid: os.Getpid, client: server.Client()}
}

func TestAnAnswerWithoutItsEndIsAnError(t *testing.T) {
	endless := question{path: "/", enough: func() *search { return searchFor("the end", 1) }}
	_, err := serving(t, "without it").ask(t.Context(), endless)
	require.ErrorContains(t, err, `it ended before "the end"`)
	n, err := serving(t, "up to the end").ask(t.Context(), endless)
	require.NoError(t, err)
	require.Equal(t, int64(len("up to the end")), n)
	_, err = serving(t, "no profile").heap(t.Context())
	require.ErrorContains(t, err, "names no HeapAlloc")
	heap, err := serving(t, "# Sys = 3\n# HeapAlloc = 1234\n# HeapSys = 5\n").heap(t.Context())
	require.NoError(t, err)
	require.InDelta(t, 1234, heap, 0)
}

func TestATextIsFoundHoweverItIsCut(t *testing.T) {
	const text = "a--b--ab--a-b--b"
	for first := range len(text) {
		for second := first; second < len(text); second++ {
			for times := 1; times <= 3; times++ {
				s := searchFor("--b", times)
				found := false
				for _, part := range []string{text[:first], text[first:second], text[second:]} {
					_, err := s.Write([]byte(part))
					found = found || err != nil
				}
				require.Equal(t, times <= 2, found, "%d times in %q, cut at %d and %d", times, text, first, second)
			}
		}
	}
}
