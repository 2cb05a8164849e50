package kube

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// definitionText is one definition of a list. established is the status of its condition.
func definitionText(plural, uid, rv, established string) string {
	return fmt.Sprintf(`{"metadata":{"name":"%[1]s.example.com","uid":%q,"resourceVersion":%q},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":%[1]q,"kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true}]},
		"status":{"conditions":[{"type":"Established","status":%[4]q}]}}`, plural, uid, rv, established)
}

func listText(rv string, items ...string) string {
	return fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"items":[%s]}`, rv, strings.Join(items, ","))
}

func TestADefinitionThatAnEarlierRunDidNotFollowBeginsAtItsCreation(t *testing.T) {
	f := NewFollower(serve(t, answer(404, "text/plain", "nothing")), nil, FollowerOptions{Created: map[types.UID]string{"u1": "9", "u2": "10"}})
	var listed []any
	for _, text := range []string{definitionText("things", "u1", "11", "True"), definitionText("waiting", "u2", "12", "False"), definitionText("others", "u3", "13", "True")} {
		listed = append(listed, parse(t, text))
	}
	f.definitions.changed = func(_, _ *extract[definition]) {} // the follower does not run
	require.NoError(t, f.definitions.Replace(listed, "20"))
	f.recall(t.Context())
	since := map[string]string{}
	for _, e := range f.definitions.all() {
		since[e.value.resource.Name] = e.since
	}
	require.Equal(t, map[string]string{"things": "9", "waiting": "", "others": ""}, since)
}

func TestADefinitionEstablishedAtAVersionDidNotBeginAfterIt(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resourceVersion") != "15" || r.URL.Query().Get("resourceVersionMatch") != "Exact" {
			answer(400, "text/plain", "another list")(w, r)
			return
		}
		answer(200, "application/json", listText("15", definitionText("things", "u1", "11", "True"), definitionText("waiting", "u2", "12", "False")))(w, r)
	})
	f := NewFollower(client, nil, FollowerOptions{Log: slog.New(slog.DiscardHandler)})
	missing := map[types.UID]bool{"u1": true, "u2": true, "u3": true}
	require.NoError(t, (&recall[definition]{cache: f.definitions, missing: missing}).dropBegunAt(t.Context(), "15"))
	require.Equal(t, map[types.UID]bool{"u2": true, "u3": true}, missing)
	require.Error(t, (&recall[definition]{cache: f.definitions, missing: missing}).dropBegunAt(t.Context(), "14"))
}

// ending is a transport that calls a function and then fails each request.
type ending func()

func (e ending) RoundTrip(*http.Request) (*http.Response, error) {
	e()
	return nil, errors.New("the server is restarted")
}

// CloseIdleConnections is called when the client is closed.
func (ending) CloseIdleConnections() {}

// The list or watch fails by itself before the relist request can cancel it.
func TestARelistRequestCountsEvenIfTheListHasJustEnded(t *testing.T) {
	var a *extractCache[definition]
	client := connect(t, &rest.Config{Host: "http://127.0.0.1", Transport: ending(func() { a.relist() })}, Options{QPS: -1})
	a = NewFollower(client, nil, FollowerOptions{}).definitions
	relisted := 0
	for range 200 {
		a.version = "60"
		a.follow(t.Context())
		select {
		case <-a.relistRequests: // The next call of follow takes the request.
		default:
			require.Empty(t, a.version, "the version belongs to another history")
			relisted++
		}
	}
	require.Positive(t, relisted)
}

// The cache may list new objects before the recorder has detected the rollback.
func TestADefinitionOlderThanThePreviousListGetsNoSince(t *testing.T) {
	a := NewFollower(serve(t, answer(404, "text/plain", "nothing")), nil, FollowerOptions{}).definitions
	a.changed = func(_, _ *extract[definition]) {}
	require.NoError(t, a.Replace(nil, "60"))
	require.NoError(t, a.Replace([]any{
		parse(t, definitionText("older", "u1", "45", "True")), parse(t, definitionText("things", "u2", "65", "True")),
	}, "70"))
	require.Empty(t, a.get("older.example.com").since, "a watch from 60 would miss its earlier objects")
	require.Equal(t, "60", a.get("things.example.com").since)
}

// redefined returns a follower that announced a definition. Since then, that definition was deleted, and another one was
// created and deleted unseen.
func redefined(t *testing.T) (*following, schema.GroupResource) {
	t.Helper()
	f := newFollowing(t, serve(t, answer(200, "application/json", listText("1"))), FollowerOptions{})
	f.definitions.changed = func(_, _ *extract[definition]) {} // the test reconciles itself
	f.catalog.seen = &Discovery{}
	gr := schema.GroupResource{Group: "example.com", Resource: "things"}
	require.NoError(t, f.definitions.Replace(nil, "10"))
	f.defined(t, "u1", "11")
	require.NoError(t, f.reconcile(t.Context(), gr))
	require.Equal(t, "11", f.next(t).since)
	f.undefined(t, "u1", "12")
	f.defined(t, "u2", "13")
	f.undefined(t, "u2", "14")
	return f, gr
}

func (f *following) defined(t *testing.T, uid, rv string) {
	t.Helper()
	require.NoError(t, f.definitions.Add(parse(t, definitionText("things", uid, rv, "True"))))
}

func (f *following) undefined(t *testing.T, uid, rv string) {
	t.Helper()
	require.NoError(t, f.definitions.Delete(parse(t, definitionText("things", uid, rv, "True"))))
}

func TestADefinitionThatWasNotHandledSetsSinceOfTheNextOne(t *testing.T) {
	f, gr := redefined(t)
	require.NoError(t, f.definitions.Add(parse(t, definitionText("things", "u3", "15", "False"))))
	f.defined(t, "u3", "16")
	require.NoError(t, f.reconcile(t.Context(), gr))
	said := f.next(t)
	require.Equal(t, "removed u1", said.what+" "+string(said.resource.DefinitionUID))
	require.Empty(t, said.at, "its end would come after the unhandled definition")
	said = f.next(t)
	require.Equal(t, "added u3", said.what+" "+string(said.resource.DefinitionUID))
	require.Equal(t, "13", said.since)

	f.undefined(t, "u3", "17")
	f.defined(t, "u4", "18")
	require.NoError(t, f.reconcile(t.Context(), gr))
	require.Equal(t, "removed", f.next(t).what)
	require.Equal(t, "18", f.next(t).since, "the previous definition was handled")
}

func TestADefinitionThatCameAndWentUnseenIsReportedAsEnded(t *testing.T) {
	f, gr := redefined(t)
	require.NoError(t, f.reconcile(t.Context(), gr))
	said := f.next(t)
	require.Equal(t, "removed u2 at 14", said.what+" "+string(said.resource.DefinitionUID)+" at "+said.at)
	require.Equal(t, "v1", said.resource.Version)
	require.NoError(t, f.reconcile(t.Context(), gr))
	f.defined(t, "u3", "15")
	require.NoError(t, f.reconcile(t.Context(), gr))
	require.Equal(t, "15", f.next(t).since)
	require.Empty(t, f.calls)
}

func TestADefinitionThatCouldNotBeAddedIsReportedAsEnded(t *testing.T) {
	f, gr := redefined(t)
	f.fail = func(said handlerCall) error {
		if said.what == "added" {
			return errors.New("the database is away")
		}
		return nil
	}
	f.defined(t, "u3", "15")
	require.Error(t, f.reconcile(t.Context(), gr))
	require.Equal(t, "removed", f.next(t).what)
	f.undefined(t, "u3", "16")
	for range 2 {
		require.NoError(t, f.reconcile(t.Context(), gr))
	}
	said := f.next(t)
	require.Equal(t, "removed u3 at 16", said.what+" "+string(said.resource.DefinitionUID)+" at "+said.at)
	require.Empty(t, f.definitions.unhandledDeletes)
}

func TestAnUnhandledDefinitionGivesNoSinceAfterARollback(t *testing.T) {
	f, gr := redefined(t)
	f.definitions.version = "" // as after a rollback
	require.NoError(t, f.definitions.Replace([]any{parse(t, definitionText("things", "u3", "20", "True"))}, "21"))
	require.Empty(t, f.definitions.get("things.example.com").since)
	require.NoError(t, f.reconcile(t.Context(), gr))
	require.Empty(t, f.definitions.unhandledDeletes)
}

// Although two definitions of the resource have ended, the handler is called once.
func TestOnlyTheLastOfTwoUnhandledDefinitionsIsReported(t *testing.T) {
	f, gr := redefined(t)
	f.catalog.recorded[gr] = Resource{Group: gr.Group, Name: gr.Resource, Version: "v1", DefinitionUID: "u0"}
	require.NoError(t, f.reconcile(t.Context(), gr))
	require.Equal(t, "u2", string(f.next(t).resource.DefinitionUID))
	require.Empty(t, f.calls)
}

func TestRecallDatesADefinitionFromTheFirstUnhandledOneOfItsName(t *testing.T) {
	for name, test := range map[string]struct {
		created map[types.UID]string
		want    string
	}{"followed": {nil, "23"}, "not followed": {map[types.UID]string{"u2": "9"}, "9"}} {
		t.Run(name, func(t *testing.T) {
			client := serve(t, stream(false, `{"type":"DELETED","object":`+definitionText("things", "u2", "21", "True")+`}`,
				`{"type":"ADDED","object":`+definitionText("things", "u3", "22", "False")+`}`,
				`{"type":"MODIFIED","object":`+definitionText("things", "u3", "23", "True")+`}`))
			f := NewFollower(client, nil, FollowerOptions{Since: "20", Created: test.created})
			f.definitions.changed = func(_, _ *extract[definition]) {}
			require.NoError(t, f.definitions.Replace([]any{parse(t, definitionText("things", "u3", "23", "True"))}, "30"))
			f.recall(t.Context())
			require.Equal(t, test.want, f.definitions.get("things.example.com").since)
		})
	}
}
