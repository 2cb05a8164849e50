package kube

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/delta"
)

func (r *realServer) definition(t *testing.T) {
	follower := r.follow(t, FollowerOptions{})
	created := r.create(t, definitionOf("things", "one.example.com", "v1beta1", "v1"))
	added := follower.next(t) // long before the next discovery
	require.Equal(t, "added", added.what)
	require.Equal(t, Resource{Group: "one.example.com", Version: "v1", Name: "things", Singular: "thing", Kind: "Things", Namespaced: true,
		Verbs: definedVerbs, ShortNames: []string{"things-short"}, Categories: []string{"all"},
		DefinitionUID: created.GetUID(), Schema: added.resource.Schema}, added.resource)
	requireSince(t, created, added)

	r.patch(t, "things.one.example.com", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"other"}]`)
	changed := follower.next(t)
	require.Equal(t, "changed", changed.what)
	require.Equal(t, added.resource, changed.before)
	require.NotEqual(t, added.resource.Schema, changed.resource.Schema)

	// The version in use is no longer served.
	r.patch(t, "things.one.example.com", `[{"op":"replace","path":"/spec/versions/1/served","value":false}]`)
	changed = follower.next(t)
	require.Equal(t, "changed", changed.what)
	require.Equal(t, "v1", changed.before.Version)
	require.Equal(t, "v1beta1", changed.resource.Version)

	r.delete(t, "things.one.example.com")
	removed := follower.next(t)
	require.Equal(t, "removed", removed.what)
	require.Equal(t, created.GetUID(), removed.resource.DefinitionUID)

	again := r.create(t, definitionOf("things", "one.example.com", "v1"))
	added = follower.next(t)
	require.Equal(t, "added", added.what)
	require.Equal(t, again.GetUID(), added.resource.DefinitionUID)
	requireSince(t, again, added)
	r.delete(t, "things.one.example.com")
	require.Equal(t, "removed", follower.next(t).what)
	require.NoError(t, follower.Degraded())
}

// requireSince requires that a resource is announced with a version not older than its definition's creation.
func requireSince(t *testing.T, created *unstructured.Unstructured, added handlerCall) {
	t.Helper()
	require.True(t, delta.Precedes(created.GetResourceVersion(), added.since))
}

func (r *realServer) betweenRuns(t *testing.T) {
	kept := r.create(t, definitionOf("kept", "three.example.com", "v1"))
	lost := r.create(t, definitionOf("lost", "three.example.com", "v1"))
	r.create(t, definitionOf("reborn", "three.example.com", "v1"))
	first := r.follow(t, FollowerOptions{Rediscover: time.Hour})
	recorded := append(first.initial, Resource{Group: "gone.example.com", Version: "v1", Name: "things"})
	first.stop()
	list, err := r.client.ListWatch(definitionResource, "").Page(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)

	r.delete(t, "lost.three.example.com")
	r.delete(t, "reborn.three.example.com")
	rebirth := r.create(t, definitionOf("reborn", "three.example.com", "v1"))
	fresh := r.create(t, definitionOf("fresh", "three.example.com", "v1"))
	r.patch(t, "kept.three.example.com", `[{"op":"add","path":"/spec/versions/0/schema/openAPIV3Schema/description","value":"other"}]`)

	second := r.follow(t, FollowerOptions{Recorded: recorded, Since: list.ResourceVersion})
	calls := map[string]handlerCall{}
	for _, made := range second.all {
		calls[made.what+" "+made.resource.Name] = made
	}
	require.NotContains(t, calls, "added lost")
	require.NotContains(t, calls, "removed kept")
	require.Empty(t, calls["added kept"].since)
	// recall looks for new definitions in a watch of a few seconds. If the watch misses one, its since is the list's version.
	for name, created := range map[string]*unstructured.Unstructured{"added fresh": fresh, "added reborn": rebirth} {
		if calls[name].since != list.ResourceVersion {
			requireSince(t, created, calls[name])
		}
	}
	require.NotContains(t, calls, "removed reborn")
	require.Equal(t, lost.GetUID(), calls["removed lost"].resource.DefinitionUID)
	requireSince(t, fresh, handlerCall{since: calls["removed lost"].at})
	require.Equal(t, kept.GetUID(), calls["added kept"].resource.DefinitionUID)
	// The follower reports a resource without a definition only after two discoveries.
	gone := second.next(t)
	require.Equal(t, "removed gone.example.com/v1 things", gone.what+" "+gone.resource.String())
	require.Empty(t, gone.at)
	for _, name := range []string{"kept", "reborn", "fresh"} {
		r.delete(t, name+".three.example.com")
	}
}

func (r *realServer) apiService(t *testing.T) {
	follower := r.follow(t, FollowerOptions{})
	service := object("apiregistration.k8s.io/v1", "APIService", "v1.dead.example.com", map[string]any{"spec": map[string]any{
		"group": "dead.example.com", "version": "v1", "groupPriorityMinimum": int64(100), "versionPriority": int64(100),
		"insecureSkipTLSVerify": true, "service": map[string]any{"namespace": "default", "name": "nothing"}}})
	services := r.dynamic.Resource(serviceResource.GroupVersion().WithResource("apiservices"))
	_, err := services.Create(t.Context(), service, metav1.CreateOptions{})
	require.NoError(t, err)
	// Its API server does not answer. Only this group fails.
	dead := schema.GroupVersion{Group: "dead.example.com", Version: "v1"}
	await(t, follower.discovered, func() bool { return follower.last().Failed[dead] != nil })
	require.NoError(t, services.Delete(t.Context(), "v1.dead.example.com", metav1.DeleteOptions{}))
	await(t, follower.discovered, func() bool { return follower.last().Failed[dead] == nil })
	require.Empty(t, follower.calls)
}

func (r *realServer) forbidden(t *testing.T) {
	client := connect(t, r.config(t, "nobody"), Options{})
	follower := r.followWith(t, client, FollowerOptions{RediscoverDegraded: 50 * time.Millisecond})
	require.True(t, apierrors.IsForbidden(follower.Degraded()), follower.Degraded())
	created := r.create(t, definitionOf("things", "four.example.com", "v1"))
	added := follower.next(t)
	require.Equal(t, "added", added.what)
	require.Equal(t, "four.example.com/v1 things", added.resource.String())
	require.Empty(t, added.since)
	require.NotEmpty(t, created.GetUID())
	r.delete(t, "things.four.example.com")
	require.Equal(t, "removed", follower.next(t).what)
}
