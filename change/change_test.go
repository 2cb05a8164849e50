package change_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/change"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scenetest"
	"github.com/kuberewind/kuberewind/patch"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func canonical(t *testing.T, text string) patch.Doc {
	t.Helper()
	if text == "" {
		return nil
	}
	doc, err := patch.Canonical([]byte(text))
	require.NoError(t, err)
	return doc
}

const (
	pods        = "/pods"
	deployments = "apps/deployments"
	scheduled   = `{"type":"PodScheduled","status":"True"}`
)

func TestAnUpdateHasTheClassOfWhatItChanged(t *testing.T) {
	for _, c := range []struct {
		what, resource, patch string
		want                  change.Class
	}{
		{"a status", pods, `[{"op":"replace","path":"/status/phase","value":"Running"}]`, change.Status},
		{"a status and managedFields", pods, `[{"op":"replace","path":"/metadata/managedFields/0/time","value":"x"},{"op":"add","path":"/status","value":{}}]`, change.Status},
		{"a status and a label", pods, `[{"op":"add","path":"/metadata/labels/a","value":"b"},{"op":"add","path":"/status/phase","value":"x"}]`, change.Shown},
		{"a field that begins with status", pods, `[{"op":"add","path":"/statuses","value":1}]`, change.Shown},
		{"managedFields", pods, `[{"op":"remove","path":"/metadata/managedFields"},{"op":"replace","path":"/metadata/generation","value":2}]`, change.ManagedFields},
		{"nothing", deployments, `[]`, change.ManagedFields},
		{"a spec", deployments, `[{"op":"replace","path":"/spec/replicas","value":2}]`, change.Shown},
		{"an annotation", deployments, `[{"op":"add","path":"/metadata/annotations/a","value":"b"}]`, change.Shown},
		{"a finalizer", deployments, `[{"op":"remove","path":"/metadata/finalizers"}]`, change.Shown},
		{"an owner", pods, `[{"op":"add","path":"/metadata/ownerReferences","value":[{}]}]`, change.Shown},
		{"the whole object", pods, `[{"op":"replace","path":"","value":{}}]`, change.Shown},
		{"a binding", pods, `[{"op":"add","path":"/spec/nodeName","value":"n"},{"op":"add","path":"/status/conditions","value":[` + scheduled + `]}]`, change.Binding},
		{"a binding after a wait", pods, `[{"op":"add","path":"/spec/nodeName","value":"n"},{"op":"replace","path":"/status/conditions/0/status","value":"True"},{"op":"remove","path":"/status/nominatedNodeName"}]`, change.Binding},
		{"a binding in a zone", pods, `[{"op":"add","path":"/metadata/labels","value":{"topology.kubernetes.io/zone":"a"}},{"op":"add","path":"/spec/nodeName","value":"n"}]`, change.Binding},
		{"a binding with another label", pods, `[{"op":"add","path":"/metadata/labels/team","value":"a"},{"op":"add","path":"/spec/nodeName","value":"n"}]`, change.Shown},
		{"a binding with another condition", pods, `[{"op":"add","path":"/spec/nodeName","value":"n"},{"op":"add","path":"/status/conditions/1","value":{"type":"Ready"}}]`, change.Shown},
		{"a field of that name elsewhere", deployments, `[{"op":"add","path":"/spec/nodeName","value":"n"}]`, change.Shown},
		{"the lock of an election", "/configmaps", `[{"op":"replace","path":"/metadata/annotations/control-plane.alpha.kubernetes.io~1leader","value":"x"}]`, change.LeaderElection},
		{"the first lock of an election", "/configmaps", `[{"op":"add","path":"/metadata/annotations","value":{"control-plane.alpha.kubernetes.io/leader":"x"}}]`, change.LeaderElection},
		{"the lock and another annotation", "/configmaps", `[{"op":"add","path":"/metadata/annotations","value":{"a":"b","control-plane.alpha.kubernetes.io/leader":"x"}}]`, change.Shown},
		{"the lock and a value", "/configmaps", `[{"op":"add","path":"/data/a","value":"b"},{"op":"replace","path":"/metadata/annotations/control-plane.alpha.kubernetes.io~1leader","value":"x"}]`, change.Shown},
	} {
		t.Run(c.what, func(t *testing.T) {
			group, resource := split(c.resource)
			got := change.Of(change.Delta{Group: group, Resource: resource, Type: delta.Updated, Source: "watch", Patch: canonical(t, c.patch)})
			require.Equal(t, c.want, got.Class)
			require.Equal(t, c.want == change.Binding, got.Node == "n")
			require.False(t, got.DeleteRequested)
		})
	}
}

func split(resource string) (group, name string) {
	group, name, _ = strings.Cut(resource, "/")
	return group, name
}

func TestAnEvictionIsShownAlthoughItChangesOnlyTheStatus(t *testing.T) {
	const evicting = `{"reason":"EvictionByEvictionAPI","status":"True","type":"DisruptionTarget"}`
	of := func(resource, before, after string) change.Change {
		object := func(conditions string) patch.Doc { return canonical(t, `{"status":{"conditions":[`+conditions+`]}}`) }
		return change.Of(change.Delta{Resource: resource, Type: delta.Updated, Source: "watch", Before: object(before), Object: object(after)})
	}
	require.Equal(t, change.Change{Class: change.Shown, Evicted: true}, of("pods", scheduled, scheduled+","+evicting))
	for name, got := range map[string]change.Change{
		"it was already noted":     of("pods", evicting, evicting+","+scheduled),
		"it is over":               of("pods", evicting, strings.ReplaceAll(evicting, "True", "False")),
		"a preemption":             of("pods", scheduled, strings.ReplaceAll(evicting, "EvictionByEvictionAPI", "PreemptionByScheduler")),
		"an object that is no Pod": of("widgets", scheduled, evicting),
		"another condition only":   of("pods", "", scheduled),
	} {
		require.Equal(t, change.Change{Class: change.Status}, got, name)
	}
}

func TestAContainerThatBeginsToWaitIsShown(t *testing.T) {
	of := func(resource, before, after string) change.Change {
		object := func(reason string) patch.Doc {
			return canonical(t, `{"status":{"containerStatuses":[{"name":"web","state":{"waiting":{"reason":"`+reason+`"}}}]}}`)
		}
		return change.Of(change.Delta{Resource: resource, Type: delta.Updated, Source: "watch", Before: object(before), Object: object(after)})
	}
	require.Equal(t, change.Change{Class: change.Shown, Waiting: []string{"ErrImagePull"}}, of("pods", "ContainerCreating", "ErrImagePull"))
	for name, got := range map[string]change.Change{
		"it already waited":        of("pods", "ErrImagePull", "ImagePullBackOff"),
		"it no longer waits":       of("pods", "ErrImagePull", "ContainerCreating"),
		"it is being created":      of("pods", "PodInitializing", "ContainerCreating"),
		"an object that is no Pod": of("widgets", "ContainerCreating", "ErrImagePull"),
	} {
		require.Equal(t, change.Change{Class: change.Status}, got, name)
	}
}

func TestADeltaWithoutAPatchIsComparedWithThePreviousVersion(t *testing.T) {
	before := canonical(t, `{"spec":1,"status":1}`)
	of := func(source delta.Source, before, after patch.Doc) change.Class {
		return change.Of(change.Delta{Resource: "pods", Type: delta.Sync, Source: source, Before: before, Object: after}).Class
	}
	require.Equal(t, change.Status, of("relist", before, canonical(t, `{"spec":1,"status":2}`)))
	require.Equal(t, change.Shown, of("relist", before, canonical(t, `{"spec":2,"status":2}`)))
	require.Equal(t, change.Resync, of("relist", before, before), "a list found it unchanged")
	require.Equal(t, change.Resync, of("resync", nil, before), "the previous day was pruned")
	require.Equal(t, change.Shown, of("list", nil, before), "it is the first version on record")
}

func TestOnlyEndpointsOfAControllerAreAnEndpointsChange(t *testing.T) {
	of := func(group, resource, metadata string) change.Class {
		return change.Of(change.Delta{Group: group, Resource: resource, Type: delta.Added, Object: canonical(t, `{"metadata":{`+metadata+`}}`)}).Class
	}
	require.Equal(t, change.Endpoints, of("discovery.k8s.io", "endpointslices", `"labels":{"endpointslice.kubernetes.io/managed-by":"endpointslice-controller.k8s.io"}`))
	require.Equal(t, change.Shown, of("discovery.k8s.io", "endpointslices", `"labels":{"endpointslice.kubernetes.io/managed-by":"staff"}`))
	require.Equal(t, change.Shown, of("discovery.k8s.io", "endpointslices", ``))
	require.Equal(t, change.Endpoints, of("", "endpoints", `"labels":{"endpoints.kubernetes.io/managed-by":"endpoint-controller"}`))
	require.Equal(t, change.Endpoints, of("", "endpoints", `"annotations":{"endpoints.kubernetes.io/last-change-trigger-time":"2026-01-01T00:00:00Z"}`))
	require.Equal(t, change.Shown, of("", "endpoints", ``))
	require.Equal(t, change.Shown, of("example.com", "events", ``), "a resource events of another group is not folded")
}

func TestADeleteRequestIsShownAndNamed(t *testing.T) {
	got := change.Of(change.Delta{Resource: "pods", Type: delta.Updated, Patch: canonical(t, `[{"op":"add","path":"/metadata/deletionTimestamp","value":"x"}]`)})
	require.Equal(t, change.Change{Class: change.Shown, DeleteRequested: true}, got)
	again := change.Of(change.Delta{Resource: "pods", Type: delta.Updated, Patch: canonical(t, `[{"op":"replace","path":"/metadata/deletionTimestamp","value":"y"}]`)})
	require.Equal(t, change.Change{Class: change.Shown}, again, "the delete was already requested")
}

func TestCountsPrintAListAndATotal(t *testing.T) {
	var c change.Counts
	require.Empty(t, c.String())
	for _, folded := range []struct {
		class change.Class
		kind  string
		n     int
	}{{change.Status, "Pod", 2}, {change.Event, "Event", 3}, {change.LeaderElection, "ConfigMap", 1}, {change.Endpoints, "Endpoints", 2}, {change.Binding, "Pod", 2}} {
		for range folded.n {
			c.Add(folded.class, folded.kind)
		}
	}
	require.Equal(t, 10, c.Total())
	require.Equal(t, "3 Events, 2 Endpoints, 2 Pod bindings, 2 Pod status, 1 ConfigMap leader election", c.String())
}

// Shown and folded deltas together are all deltas. The shown changes of web are the writes of users.
func TestTheSceneIsFoldedToTheWritesOfUsers(t *testing.T) {
	database := pgtest.New(t, scenetest.Record)
	rec, err := history.Open(t.Context(), database.URL(), history.Options{})
	require.NoError(t, err)
	t.Cleanup(rec.Close)
	classes, total := map[change.Class]int{}, 0
	var folded change.Counts
	var done []string
	for v, err := range rec.Versions(t.Context(), history.Query{}) {
		require.NoError(t, err)
		total++
		c := change.Of(change.Delta{Group: v.Stream.Group, Resource: v.Stream.Resource, Type: v.Type, Source: v.Source, Patch: v.Patch, Before: v.Before, Object: v.Doc})
		classes[c.Class]++
		if c.Class != change.Shown {
			folded.Add(c.Class, v.Stream.Kind)
		} else if v.Namespace == "shop" && v.Stream.Resource == "deployments" && v.Name == "web" && v.Manager != "kube-controller-manager" {
			done = append(done, v.Manager)
		}
	}
	require.Equal(t, total, classes[change.Shown]+folded.Total())
	require.Equal(t, "296 Leases, 189 Events, 130 ReplicaSet status, 99 Deployment status, 46 EndpointSlices, 40 Pod bindings, 40 Pod status, 34 Endpoints, "+
		"3 HorizontalPodAutoscaler status, 3 Job status, 2 CustomResourceDefinition status, 2 Namespace status, 2 Node status", folded.String())
	require.Equal(t, []string{"kubectl-client-side-apply", "kubectl", "kubectl-set", "kubectl-annotate", "kubectl"}, done[:5], "applied, scaled, broken, annotated, undone")
}
