package data

import (
	"fmt"
	"math/rand/v2"
)

// The resources of a generated cluster, by their index.
const (
	configMaps = iota
	events
	nodes
	pods
	deployments
	replicaSets
	jobs
	leases
	kinds
)

var generated = [kinds]Resource{
	{Version: "v1", Resource: "configmaps", Kind: "ConfigMap", Namespaced: true},
	{Version: "v1", Resource: "events", Kind: "Event", Namespaced: true},
	{Version: "v1", Resource: "nodes", Kind: "Node"},
	{Version: "v1", Resource: "pods", Kind: "Pod", Namespaced: true},
	{Group: "apps", Version: "v1", Resource: "deployments", Kind: "Deployment", Namespaced: true},
	{Group: "apps", Version: "v1", Resource: "replicasets", Kind: "ReplicaSet", Namespaced: true},
	{Group: "batch", Version: "v1", Resource: "jobs", Kind: "Job", Namespaced: true},
	{Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Kind: "Lease", Namespaced: true},
}

// newTexts returns the shapes of the objects. Pods have one for each stage, first those of ReplicaSets, then those of Jobs. Jobs have
// one while they run, one when done, and one when failed. Kinds with replicas have one for none, and Events one for no Node.
func newTexts() (all [kinds][]*text, err error) {
	b := &builder{}
	sources := [kinds][]string{
		configMaps: {b.configMap()}, events: {b.event(eventHost), b.event("")}, nodes: {b.node()}, deployments: {b.deployment(updatedCount), b.deployment("")},
		replicaSets: {b.replicaSet(replicaCounts), b.replicaSet("")},
		jobs:        {b.job(jobRunning), b.job(jobDone), b.job(jobFailed)}, leases: {b.lease()},
	}
	for s := range podStages {
		sources[pods] = append(sources[pods], b.pod(s, "apps/v1", "ReplicaSet", "Always"))
	}
	for s := range podStages {
		sources[pods] = append(sources[pods], b.pod(s, "batch/v1", "Job", "Never"))
	}
	if b.err != nil {
		return all, b.err
	}
	for k := range all {
		for _, source := range sources[k] {
			t, err := newText(source)
			if err != nil {
				return all, fmt.Errorf("%s: %w", generated[k].Resource, err)
			}
			all[k] = append(all[k], t)
		}
	}
	return all, nil
}

// A cluster is one at a moment, with what will happen. It belongs to one iteration.
type cluster struct {
	chance   *chance
	schedule *schedule
	store    *store
	reporter *reporter
	apps     []*app
}

func newCluster(random *rand.Rand, texts [kinds][]*text) *cluster {
	c := &cluster{chance: &chance{random}}
	c.schedule = &schedule{chance: c.chance}
	c.store = &store{chance: c.chance, schedule: c.schedule, texts: texts, rv: 1000}
	c.reporter = &reporter{store: c.store, schedule: c.schedule}
	return c
}
