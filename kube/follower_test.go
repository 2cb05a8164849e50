package kube

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	thingsPath      = "/apis/example.com/v1/things"
	servicesPath    = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// holding answers lists with a text and keeps watches open.
func holding(lists map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, ok := lists[r.URL.Path]
		switch {
		case !ok:
			answer(404, "text/plain", "404 page not found")(w, r)
		case r.URL.Query().Get("watch") != "":
			stream(true)(w, r)
		default:
			answer(200, "application/json", text)(w, r)
		}
	}
}

const none = `{"metadata":{"resourceVersion":"10"},"items":[]}`

// rare prevents a follower's periodic discoveries.
var rare = FollowerOptions{Rediscover: time.Hour, RediscoverDegraded: time.Hour}

// discoverOnce makes the follower discover once more, and waits until it has announced its findings.
func (f *following) discoverOnce(t *testing.T) {
	t.Helper()
	for len(f.discovered) > 0 {
		<-f.discovered
	}
	f.queue.Add(everything)
	select {
	case <-f.discovered:
	case <-time.After(deadline):
		t.Fatal("no discovery")
	}
}

func followOffer(t *testing.T, o *offering, options FollowerOptions) *following {
	t.Helper()
	f := newFollowing(t, serve(t, o.ServeHTTP), options)
	f.confirm = time.Hour
	f.start(t)
	return f
}

func TestAGroupThatFailsIsNotRemoved(t *testing.T) {
	full := offer{"v1": {"pods"}, "metrics/v1": {"nodes"}}
	o := &offering{offer: full, other: holding(map[string]string{definitionsPath: none, servicesPath: none})}
	f := followOffer(t, o, rare)
	require.Equal(t, []string{"v1 pods", "metrics/v1 nodes"}, names(f.initial))
	require.NoError(t, f.Degraded())

	o.set(offer{"v1": {"pods"}, "metrics/v1": nil})
	for range 3 {
		f.discoverOnce(t)
	}
	o.set(offer{"v1": {"pods"}, "metrics/v2": {"nodes"}, "metrics/v1": nil})
	f.discoverOnce(t)
	o.set(full)
	f.discoverOnce(t)
	require.Empty(t, f.calls)
}

func TestAResourceIsRemovedOnlyAfterTwoDiscoveriesMissIt(t *testing.T) {
	full, half := offer{"v1": {"pods"}, "apps/v1": {"things"}}, offer{"v1": {"pods"}}
	o := &offering{offer: full, other: holding(map[string]string{definitionsPath: none, servicesPath: none})}
	f := followOffer(t, o, rare)

	// A single answer may come from an API server that lags behind the others.
	o.set(half)
	f.discoverOnce(t)
	o.set(full)
	f.discoverOnce(t)
	require.Empty(t, f.calls)

	o.set(half)
	f.discoverOnce(t)
	require.Empty(t, f.calls)
	f.discoverOnce(t)
	said := f.next(t)
	require.Equal(t, "removed", said.what)
	require.Equal(t, "apps/v1 things", said.resource.String())

	o.set(full)
	f.discoverOnce(t)
	require.Equal(t, "added", f.next(t).what)

	o.set(offer{"v1": {"pods"}, "apps/v2": {"things"}})
	f.discoverOnce(t)
	require.Empty(t, f.calls)
	f.discoverOnce(t)
	said = f.next(t)
	require.Equal(t, "changed", said.what)
	require.Equal(t, "apps/v1 things to apps/v2 things", said.before.String()+" to "+said.resource.String())
}

func TestNothingIsJudgedBeforeTheDefinitionsAreKnown(t *testing.T) {
	client := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Error("asked for " + r.URL.Path) })
	things := Resource{Group: "example.com", Version: "v1", Name: "things", DefinitionUID: "u"}
	f := newFollowing(t, client, FollowerOptions{Recorded: []Resource{things}})
	require.NoError(t, f.process(t.Context(), everything))
	require.NoError(t, f.process(t.Context(), things.GroupResource()))
	require.Empty(t, f.calls)
}

func TestDiscoveryIsRepeatedSoonIfItMissesAResource(t *testing.T) {
	o := &offering{offer: offer{"v1": {"pods"}, "apps/v1": {"things"}}, other: holding(map[string]string{definitionsPath: none, servicesPath: none})}
	f := newFollowing(t, serve(t, o.ServeHTTP), rare)
	f.confirm = time.Millisecond
	f.start(t)
	o.set(offer{"v1": {"pods"}})
	f.queue.Add(everything)
	require.Equal(t, "removed", f.next(t).what)
}

func TestAFailedHandlerCallIsRepeated(t *testing.T) {
	o := &offering{offer: offer{"v1": {"pods", "nodes"}}, other: holding(map[string]string{definitionsPath: none, servicesPath: none})}
	f := newFollowing(t, serve(t, o.ServeHTTP), rare)
	var tries atomic.Int32
	f.fail = func(said handlerCall) error {
		if said.resource.Name == "pods" && tries.Add(1) < 4 {
			return errors.New("no room")
		}
		return nil
	}
	f.run(t)
	calls := map[string]bool{f.next(t).resource.Name: true, f.next(t).resource.Name: true}
	require.Equal(t, map[string]bool{"pods": true, "nodes": true}, calls)
	require.Equal(t, int32(4), tries.Load())
	<-f.Synced()
}

func TestRemovedIsCalledForAResourceWhoseAddedFailed(t *testing.T) {
	o := &offering{offer: offer{"v1": {"pods", "nodes"}}, other: holding(map[string]string{definitionsPath: none, servicesPath: none})}
	f := newFollowing(t, serve(t, o.ServeHTTP), rare)
	f.confirm = time.Millisecond
	f.fail = func(said handlerCall) error {
		if said.what == "added" && said.resource.Name == "pods" {
			return errors.New("no room")
		}
		return nil
	}
	f.start(t)
	require.Equal(t, []string{"v1 nodes"}, names(f.initial))
	o.set(offer{"v1": {"nodes"}})
	f.queue.Add(everything)
	said := f.next(t)
	require.Equal(t, "removed v1 pods", said.what+" "+said.resource.String())
}

func TestAFailedDiscoveryIsRetried(t *testing.T) {
	o := &offering{offer: offer{"v1": {"pods"}}, broken: 3, other: holding(map[string]string{definitionsPath: none, servicesPath: none})}
	f := followOffer(t, o, rare)
	require.Equal(t, []string{"v1 pods"}, names(f.initial))
}

func TestARecordedResourceIsNotRemovedWhileItsGroupIsUnavailable(t *testing.T) {
	recorded := []Resource{{Version: "v1", Name: "pods", Kind: "Pods", Namespaced: true}, {Group: "metrics", Version: "v1", Name: "nodes"}, {Group: "left", Version: "v1", Name: "things"}}
	options := rare
	options.Recorded = recorded
	o := &offering{offer: offer{"v1": {"pods", "nodes"}, "metrics/v1": nil}, other: holding(map[string]string{definitionsPath: none, servicesPath: none})}
	f := newFollowing(t, serve(t, o.ServeHTTP), options)
	f.confirm = time.Millisecond
	f.run(t)
	for _, want := range []string{"added v1 nodes", "added v1 pods", "removed left/v1 things"} {
		said := f.next(t)
		require.Equal(t, want, said.what+" "+said.resource.String())
		require.Empty(t, said.at)
	}
}

func TestWithoutDefinitionsDiscoveryFindsResources(t *testing.T) {
	for name, other := range map[string]http.HandlerFunc{
		"not served": holding(nil),
		"forbidden":  answer(403, "application/json", failure(403, "Forbidden", "no")),
		"broken":     answer(500, "application/json", failure(500, "InternalError", "no")),
	} {
		t.Run(name, func(t *testing.T) {
			o := &offering{offer: offer{"v1": {"pods"}, "example.com/v1": {"things"}}, other: other}
			options := rare
			options.RediscoverDegraded = time.Millisecond
			f := followOffer(t, o, options)
			require.Equal(t, []string{"v1 pods", "example.com/v1 things"}, names(f.initial))
			require.Error(t, f.Degraded())
			o.set(offer{"v1": {"pods"}, "example.com/v1": {"things", "others"}})
			require.Equal(t, "example.com/v1 others", f.next(t).resource.String())
		})
	}
}

// A recorder that may not read the definitions sees no deletion of one. Two discoveries must miss its resource, and the
// version at which it ended is unknown.
func TestWithoutDefinitionsAResourceIsRemovedAfterTwoDiscoveriesWithoutIt(t *testing.T) {
	recorded := func(group, uid string) Resource {
		return Resource{Group: group, Version: "v1", Name: "things", Kind: "Things", Namespaced: true, DefinitionUID: types.UID(uid)}
	}
	options := rare
	options.Recorded = []Resource{recorded("kept", "1"), recorded("ended", "2"), recorded("back", "3")}
	o := &offering{offer: offer{"v1": {"pods"}, "kept/v1": {"things"}}, other: answer(403, "application/json", failure(403, "Forbidden", "no"))}
	f := followOffer(t, o, options)
	require.True(t, apierrors.IsForbidden(f.Degraded()), f.Degraded())
	require.Equal(t, []string{"v1 pods", "kept/v1 things"}, names(f.initial))
	require.Empty(t, f.calls)

	o.set(offer{"v1": {"pods"}, "kept/v1": {"things"}, "back/v1": {"things"}})
	f.discoverOnce(t)
	f.discoverOnce(t)
	calls := map[string]handlerCall{}
	for range 2 {
		said := f.next(t)
		calls[said.what+" "+said.resource.String()] = said
	}
	require.Contains(t, calls, "added back/v1 things")
	require.Equal(t, handlerCall{what: "removed", resource: recorded("ended", "2")}, calls["removed ended/v1 things"])
	require.Empty(t, f.calls)
}

// registered is a list of APIServices with only the APIService of v1, which every aggregator has. Its label says that it
// belongs to a definition. Therefore its arrival starts no discovery, and tests can count discoveries. The resources of v1
// wait for that definition.
const registered = `{"metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"v1.","labels":{"` + automanaged + `":"true"}},"spec":{"version":"v1"}}]}`

const thingsDefined = `{"metadata":{"resourceVersion":"13"},"items":[{"metadata":{"name":"things.example.com","uid":"u","resourceVersion":"12"},
	"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true}]},
	"status":{"conditions":[{"type":"Established","status":"True"}]}}]}`

// watched answers the follower's own lists and watches. While hidden is set, a list of all definitions omits the definition
// of things.
func watched(hidden *atomic.Bool) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		lists := map[string]string{definitionsPath: thingsDefined, servicesPath: registered}
		if hidden.Load() && r.URL.Query().Get("fieldSelector") != "metadata.name=things.example.com" {
			lists[definitionsPath] = none
		}
		holding(lists)(w, r)
	}
}

// Discovery can be ahead of the watches of definitions and APIServices for any time.
func TestAResourceThatDiscoveryShowsFirstIsAnnouncedWithItsDefinition(t *testing.T) {
	var hidden atomic.Bool
	hidden.Store(true)
	o := &offering{offer: offer{"v1": {"pods"}}, other: watched(&hidden)}
	f := followOffer(t, o, rare)
	require.Empty(t, f.initial)

	o.set(offer{"v1": {"pods"}, "example.com/v1": {"things"}})
	for range 3 {
		f.discoverOnce(t)
		require.Empty(t, f.calls)
	}
	hidden.Store(false)
	f.LookAgain(Definitions)
	added := f.next(t)
	require.Equal(t, "added example.com/v1 things", added.what+" "+added.resource.String())
	require.Equal(t, types.UID("u"), added.resource.DefinitionUID)
	f.discoverOnce(t)
	require.Empty(t, f.calls)
}

// Discovery can also be behind these watches.
func TestAStaleDiscoveryDoesNotAnnounceAResourceWhoseDefinitionIsGone(t *testing.T) {
	var gone atomic.Bool
	o := &offering{offer: offer{"v1": {"pods"}, "example.com/v1": {"things"}}, other: func(w http.ResponseWriter, r *http.Request) {
		lists := map[string]string{definitionsPath: none, servicesPath: registered}
		if !gone.Load() {
			lists[definitionsPath], lists[thingsPath] = thingsDefined, none
		}
		holding(lists)(w, r)
	}}
	f := followOffer(t, o, rare)
	require.Equal(t, []string{"example.com/v1 things"}, names(f.initial))

	gone.Store(true)
	f.LookAgain(Definitions)
	require.Equal(t, "removed", f.next(t).what)
	for range 3 { // any number of discoveries
		f.discoverOnce(t)
	}
	o.set(offer{"v1": {"pods"}})
	for range 2 {
		f.discoverOnce(t)
	}
	require.Empty(t, f.calls)
}

func TestAResourceWithoutAPIServiceIsAnnouncedAfterTwoDiscoveriesInARow(t *testing.T) {
	without, with := offer{"v1": {"pods"}}, offer{"v1": {"pods"}, "example.com/v1": {"things"}}
	options := rare
	options.Recorded = []Resource{{Group: "example.com", Version: "v1", Name: "things", Kind: "Things"}}
	for name, options := range map[string]FollowerOptions{"a new one": rare, "one on record": options} {
		t.Run(name, func(t *testing.T) {
			o := &offering{offer: with, other: holding(map[string]string{definitionsPath: none, servicesPath: registered, thingsPath: none})}
			f := followOffer(t, o, options)
			require.Empty(t, f.initial)
			for _, offered := range []offer{without, with} {
				o.set(offered)
				f.discoverOnce(t)
				require.Empty(t, f.calls)
			}
			f.discoverOnce(t)
			added := f.next(t)
			require.Equal(t, "added example.com/v1 things", added.what+" "+added.resource.String())
			require.Empty(t, added.resource.DefinitionUID)
		})
	}
}

func TestDiscoveryIsRepeatedSoonForAResourceWithoutAPIService(t *testing.T) {
	o := &offering{offer: offer{"v1": {"pods"}, "example.com/v1": {"things"}}, other: holding(map[string]string{definitionsPath: none, servicesPath: registered, thingsPath: none})}
	f := newFollowing(t, serve(t, o.ServeHTTP), rare)
	f.confirm = time.Millisecond
	f.run(t)
	added := f.next(t)
	require.Equal(t, "added example.com/v1 things", added.what+" "+added.resource.String())
}

func TestAnAPIServiceThatDiscoveryDoesNotListYetIsAFailedGroup(t *testing.T) {
	service := `{"metadata":{"resourceVersion":"10"},"items":[{"metadata":{"name":"v1.late"},"spec":{"group":"late","version":"v1","service":{"name":"x"}},"status":{"conditions":[{"type":"Available","status":"True"}]}}]}`
	o := &offering{offer: offer{"v1": {"pods"}}, other: holding(map[string]string{definitionsPath: none, servicesPath: service})}
	options := rare
	options.Recorded = []Resource{{Group: "late", Version: "v1", Name: "things", Kind: "Things", Namespaced: true}}
	f := newFollowing(t, serve(t, o.ServeHTTP), options)
	f.confirm = time.Millisecond
	f.start(t)
	require.Contains(t, f.last().Failed, schema.GroupVersion{Group: "late", Version: "v1"})
	// The follower repeats discovery until the group appears, and reports nothing before.
	o.set(offer{"v1": {"pods"}, "late/v1": {"things", "more"}})
	calls := []handlerCall{f.next(t), f.next(t)}
	require.ElementsMatch(t, []string{"added late/v1 more", "added late/v1 things"},
		[]string{calls[0].what + " " + calls[0].resource.String(), calls[1].what + " " + calls[1].resource.String()})
}

func TestADefinitionIsParsedIntoItsServedVersions(t *testing.T) {
	text := `{"metadata":{"name":"things.x","uid":"u"},"spec":{"group":"x","scope":"Cluster","names":{"plural":"things","kind":"Thing"},
		"versions":[{"name":"v1alpha1","served":true},{"name":"v2","served":false},{"name":"v1","served":true},{"name":"v1beta2","served":true}],
		"conversion":{"strategy":"Webhook","webhook":{"clientConfig":{"caBundle":"AAA"}}}},"status":{"conditions":[{"type":"Established","status":"True","reason":"x"}]}}`
	read := func(text string) *definition {
		d, err := parseDefinition(&Object{JSON: []byte(text)})
		require.NoError(t, err)
		return d
	}
	d := read(text)
	require.True(t, d.established)
	require.Equal(t, []string{"v1", "v1beta2", "v1alpha1"}, d.versions)
	r, ok := d.in("v1alpha1")
	require.True(t, ok)
	require.Equal(t, "v1alpha1", r.Version)
	r, _ = d.in("v2")
	require.Equal(t, "v1", r.Version)
	require.False(t, r.Namespaced)
	_, ok = (&definition{}).in("v1")
	require.False(t, ok)

	same := read(strings.Replace(text, "AAA", "BBB", 1))
	require.Equal(t, d.resource.Schema, same.resource.Schema, "a rotated certificate changes no object")
	for _, change := range [][2]string{{"Webhook", "None"}, {`"v1","served"`, `"v1","schema":{},"served"`}} {
		require.NotEqual(t, d.resource.Schema, read(strings.Replace(text, change[0], change[1], 1)).resource.Schema)
	}
	_, err := parseDefinition(&Object{JSON: []byte(`{"spec":{"versions":{}}}`)})
	require.Error(t, err)
}

func TestADefinitionFoundInALaterListBeganAfterThePreviousList(t *testing.T) {
	object := func(name, uid string, established bool) *Object {
		text, err := json.Marshal(map[string]any{"metadata": map[string]any{"name": name, "uid": uid}, "spec": map[string]any{"versions": []any{}},
			"status": map[string]any{"conditions": []condition{{"Established", map[bool]string{true: "True", false: "False"}[established]}}}})
		require.NoError(t, err)
		return parse(t, string(text))
	}
	f := NewFollower(serve(t, answer(404, "", "")), nil, FollowerOptions{})
	a := f.definitions
	a.changed = func(_, _ *extract[definition]) {}
	since := func(name string) string { return a.get(name).since }
	require.NoError(t, a.Replace([]any{object("old", "1", true), object("slow", "2", false), object("reborn", "3", true)}, "100"))
	require.Empty(t, since("old"))
	a.markHandled("reborn", "3")
	a.UpdateResourceVersion("150")
	require.NoError(t, a.Replace([]any{object("old", "1", true), object("slow", "2", true), object("reborn", "4", true), object("new", "5", true)}, "200"))
	require.Empty(t, since("old"))
	require.Equal(t, []string{"150", "150", "150"}, []string{since("slow"), since("reborn"), since("new")})

	event := object("watched", "6", false)
	event.ResourceVersion = "210"
	require.NoError(t, a.Add(event))
	require.Empty(t, since("watched"))
	for _, version := range []string{"220", "230"} {
		event = object("watched", "6", true)
		event.ResourceVersion = version
		require.NoError(t, a.Update(event))
		require.Equal(t, "220", since("watched"))
	}
	require.NoError(t, a.Delete(event))
	require.Nil(t, a.get("watched"))
}

func TestADefinitionIsFoundAtOnceAfterARollback(t *testing.T) {
	definition := `{"metadata":{"name":"things.example.com","uid":"u","resourceVersion":"7"},"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"things","kind":"Thing"},
		"versions":[{"name":"v1","served":true}]},"status":{"conditions":[{"type":"Established","status":"True"}]}}`
	var back atomic.Bool
	o := &offering{offer: offer{"v1": {"pods"}}, other: func(w http.ResponseWriter, r *http.Request) {
		lists := map[string]string{definitionsPath: none, servicesPath: none}
		if back.Load() {
			lists[definitionsPath] = `{"metadata":{"resourceVersion":"8"},"items":[` + definition + `]}`
			lists["/apis/example.com/v1/things"] = none
		}
		holding(lists)(w, r)
	}}
	f := followOffer(t, o, rare)
	back.Store(true)
	f.LookAgain(schema.GroupResource{Resource: "pods"})
	f.LookAgain(definitionResource.GroupResource())
	added := f.next(t)
	require.Equal(t, "added example.com/v1 things", added.what+" "+added.resource.String())
	require.Empty(t, added.since, "a watch from the old revision would show nothing")
}

func TestAResourceThatIsNotServedYetIsNotAnnounced(t *testing.T) {
	err := serve(t, answer(404, "text/plain", "404 page not found")).served(t.Context(), widgets)
	require.ErrorContains(t, err, "example.com/v1 widgets is not served yet")
	require.NoError(t, serve(t, answer(403, "application/json", failure(403, "Forbidden", "no"))).served(t.Context(), widgets))
}
