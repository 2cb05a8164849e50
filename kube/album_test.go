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

// definitionText is one of a list, which is established or not.
func definitionText(plural, uid, rv, established string) string {
	return fmt.Sprintf(`{"metadata":{"name":"%[1]s.example.com","uid":%q,"resourceVersion":%q},"spec":{"group":"example.com","scope":"Namespaced",
		"names":{"plural":%[1]q,"kind":"Thing"},"versions":[{"name":"v1","served":true,"storage":true}]},
		"status":{"conditions":[{"type":"Established","status":%[4]q}]}}`, plural, uid, rv, established)
}

func listText(rv string, items ...string) string {
	return fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"items":[%s]}`, rv, strings.Join(items, ","))
}

func TestADefinitionThatAnEarlierRunDidNotFollowBeginsWithItsCreation(t *testing.T) {
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

func TestADefinitionThatWasEstablishedAtAVersionHasNotBegunSince(t *testing.T) {
	client := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("resourceVersion") != "15" || r.URL.Query().Get("resourceVersionMatch") != "Exact" {
			answer(400, "text/plain", "another list")(w, r)
			return
		}
		answer(200, "application/json", listText("15", definitionText("things", "u1", "11", "True"), definitionText("waiting", "u2", "12", "False")))(w, r)
	})
	f := NewFollower(client, nil, FollowerOptions{Log: slog.New(slog.DiscardHandler)})
	missing := map[types.UID]bool{"u1": true, "u2": true, "u3": true}
	require.NoError(t, (&recall[definition]{album: f.definitions, missing: missing}).dropThoseAt(t.Context(), "15"))
	require.Equal(t, map[types.UID]bool{"u2": true, "u3": true}, missing)
	require.Error(t, (&recall[definition]{album: f.definitions, missing: missing}).dropThoseAt(t.Context(), "14"))
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
func TestADefinitionThatIsOlderThanTheListBeforeHasNotBegunSince(t *testing.T) {
	a := NewFollower(serve(t, answer(404, "text/plain", "nothing")), nil, FollowerOptions{}).definitions
	a.changed = func(_, _ *extract[definition]) {}
	require.NoError(t, a.Replace(nil, "60"))
	require.NoError(t, a.Replace([]any{
		parse(t, definitionText("older", "u1", "45", "True")), parse(t, definitionText("things", "u2", "65", "True")),
	}, "70"))
	require.Empty(t, a.get("older.example.com").since, "a watch from 60 would leave out what it has by then")
	require.Equal(t, "60", a.get("things.example.com").since)
}

// definedAnew follows a definition that was followed, was deleted, and came and went once more before anybody looked.
func definedAnew(t *testing.T) (*following, schema.GroupResource) {
	t.Helper()
	f := newFollowing(t, serve(t, answer(200, "application/json", listText("1"))), FollowerOptions{})
	f.definitions.changed = func(_, _ *extract[definition]) {} // the test does
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

func TestADefinitionBetweenTwoLooksIsReadThroughTheNextOne(t *testing.T) {
	f, gr := definedAnew(t)
	require.NoError(t, f.definitions.Add(parse(t, definitionText("things", "u3", "15", "False"))))
	f.defined(t, "u3", "16")
	require.NoError(t, f.reconcile(t.Context(), gr))
	said := f.next(t)
	require.Equal(t, "removed u1", said.what+" "+string(said.resource.DefinitionUID))
	require.Empty(t, said.at, "its end would be after what was not followed")
	said = f.next(t)
	require.Equal(t, "added u3", said.what+" "+string(said.resource.DefinitionUID))
	require.Equal(t, "13", said.since)

	f.undefined(t, "u3", "17")
	f.defined(t, "u4", "18")
	require.NoError(t, f.reconcile(t.Context(), gr))
	require.Equal(t, "removed", f.next(t).what)
	require.Equal(t, "18", f.next(t).since, "the one before was followed")
}

func TestADefinitionBetweenTwoLooksIsReportedAsEnded(t *testing.T) {
	f, gr := definedAnew(t)
	require.NoError(t, f.reconcile(t.Context(), gr))
	said := f.next(t)
	require.Equal(t, "removed u2 at 14", said.what+" "+string(said.resource.DefinitionUID)+" at "+said.at)
	require.Equal(t, "v1", said.resource.Version)
	require.NoError(t, f.reconcile(t.Context(), gr))
	f.defined(t, "u3", "15")
	require.NoError(t, f.reconcile(t.Context(), gr))
	require.Equal(t, "15", f.next(t).since)
	require.Empty(t, f.tellings)
}

func TestADefinitionThatWasNotFollowedIsReportedAsEnded(t *testing.T) {
	f, gr := definedAnew(t)
	f.fail = func(said telling) error {
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
	require.Empty(t, f.definitions.missed)
}

func TestADefinitionMissedBeforeARollbackProvesNothingAfterIt(t *testing.T) {
	f, gr := definedAnew(t)
	f.definitions.version = "" // as where the history went backwards
	require.NoError(t, f.definitions.Replace([]any{parse(t, definitionText("things", "u3", "20", "True"))}, "21"))
	require.Empty(t, f.definitions.get("things.example.com").since)
	require.NoError(t, f.reconcile(t.Context(), gr))
	require.Empty(t, f.definitions.missed)
}

// The handler hears once that a resource has ended, though there was more than one definition of it.
func TestTheLastOfTwoDefinitionsThatWereNotFollowedIsReported(t *testing.T) {
	f, gr := definedAnew(t)
	f.catalog.recorded[gr] = Resource{Group: gr.Group, Name: gr.Resource, Version: "v1", DefinitionUID: "u0"}
	require.NoError(t, f.reconcile(t.Context(), gr))
	require.Equal(t, "u2", string(f.next(t).resource.DefinitionUID))
	require.Empty(t, f.tellings)
}

func TestADefinitionThatWasNotFollowedIsReadThroughTheNextOneFromItsCreation(t *testing.T) {
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
