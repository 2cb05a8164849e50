package kube

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// definitionText is one of a list, which is established or not.
func definitionText(plural, uid, rv, established string) string {
	return fmt.Sprintf(`{"metadata":{"name":"%[1]s.example.com","uid":%q,"resourceVersion":%q},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":%[1]q,"kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true}]},
		"status":{"conditions":[{"type":"Established","status":%[4]q}]}}`, plural, uid, rv, established)
}

func listText(rv string, items ...string) string {
	return fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"items":[%s]}`, rv, strings.Join(items, ","))
}

func TestWhatAnEarlierRunDidNotComeToFollowHasBegunWithItsCreation(t *testing.T) {
	f := NewFollower(serve(t, answer(404, "text/plain", "nothing")), nil, FollowerOptions{Created: map[types.UID]string{"u1": "9", "u2": "10"}})
	var listed []any
	for _, text := range []string{definitionText("things", "u1", "11", "True"), definitionText("waiting", "u2", "12", "False"), definitionText("others", "u3", "13", "True")} {
		listed = append(listed, parse(t, text))
	}
	f.definitions.changed = func(_, _ *extract[definition]) {} // nobody is told: it does not run
	require.NoError(t, f.definitions.Replace(listed, "20"))
	f.recall(t.Context())
	since := map[string]string{}
	for _, e := range f.definitions.all() {
		since[e.value.resource.Name] = e.since
	}
	require.Equal(t, map[string]string{"things": "9", "waiting": "", "others": ""}, since)
}

func TestWhatWasEstablishedAtAVersionHasNotBegunSince(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resourceVersion") != "15" || r.URL.Query().Get("resourceVersionMatch") != "Exact" {
			answer(400, "text/plain", "another list")(w, r)
			return
		}
		answer(200, "application/json", listText("15", definitionText("things", "u1", "11", "True"), definitionText("waiting", "u2", "12", "False")))(w, r)
	})
	f := NewFollower(client, nil, FollowerOptions{Log: slog.New(slog.DiscardHandler)})
	missing := map[types.UID]bool{"u1": true, "u2": true, "u3": true}
	require.NoError(t, f.definitions.dropThoseAt(t.Context(), "15", missing))
	require.Equal(t, map[types.UID]bool{"u2": true, "u3": true}, missing)
	require.Error(t, f.definitions.dropThoseAt(t.Context(), "14", missing))
}

// ending is a transport of which each request fails, when it has done something.
type ending func()

func (e ending) RoundTrip(*http.Request) (*http.Response, error) {
	e()
	return nil, errors.New("the server is restarted")
}

// CloseIdleConnections is what a transport is asked for when its client ends.
func (ending) CloseIdleConnections() {}

// The list or watch has ended by itself before the request could end it.
func TestARequestToListAnewCountsAlsoWhereTheListHasJustEnded(t *testing.T) {
	var a *album[definition]
	client := connect(t, &rest.Config{Host: "http://127.0.0.1", Transport: ending(func() { a.listAnew() })}, Options{QPS: -1})
	a = NewFollower(client, nil, FollowerOptions{}).definitions
	taken := 0
	for range 200 {
		a.version = "60"
		a.follow(t.Context())
		select {
		case <-a.again: // The next one will take it.
		default:
			require.Empty(t, a.version, "it is of another history")
			taken++
		}
	}
	require.Positive(t, taken)
}

// The follower may list what is new before anybody has found out that the history went backwards.
func TestWhatIsOlderThanTheListBeforeHasNotBegunSince(t *testing.T) {
	a := NewFollower(serve(t, answer(404, "text/plain", "nothing")), nil, FollowerOptions{}).definitions
	a.changed = func(_, _ *extract[definition]) {}
	require.NoError(t, a.Replace(nil, "60"))
	require.NoError(t, a.Replace([]any{
		parse(t, definitionText("older", "u1", "45", "True")), parse(t, definitionText("things", "u2", "65", "True")),
	}, "70"))
	require.Empty(t, a.get("older.example.com").since, "a watch from 60 would leave out what it has by then")
	require.Equal(t, "60", a.get("things.example.com").since)
}
