package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A kind is one resource of the synthetic cluster.
type kind struct {
	spec     postgres.StreamSpec
	resource schema.GroupResource
	texts    []*text // by stage
}

const (
	pods = iota
	deployments
	configMaps
	leases
	kinds
)

func newKinds() ([kinds]*kind, error) {
	all := [kinds]*kind{
		{spec: postgres.StreamSpec{Resource: "pods", Kind: "Pod"}},
		{spec: postgres.StreamSpec{Group: "apps", Resource: "deployments", Kind: "Deployment"}},
		{spec: postgres.StreamSpec{Resource: "configmaps", Kind: "ConfigMap"}},
		{spec: postgres.StreamSpec{Group: "coordination.k8s.io", Resource: "leases", Kind: "Lease"}},
	}
	sources := [kinds][]string{deployments: {deploymentText()}, configMaps: {configMapText()}, leases: {leaseText()}}
	for stage := range podStages {
		sources[pods] = append(sources[pods], podText(stage))
	}
	for i, k := range all {
		k.spec.Version, k.spec.Namespaced = "v1", true
		k.resource = schema.GroupResource{Group: k.spec.Group, Resource: k.spec.Resource}
		for _, source := range sources[i] {
			t, err := newText(source)
			if err != nil {
				return all, fmt.Errorf("%s: %w", k.resource, err)
			}
			k.texts = append(k.texts, t)
		}
	}
	return all, nil
}

// An object is a living one.
type object struct {
	kind                 int
	id                   int64 // seq of its first delta
	stage                int
	count                int
	generation           int
	manager, subresource string
	values               [holes]string
}

// A version is an object at one resource version. It is a postgres.Object.
type version struct {
	namespace, name, uid, rv string
	doc                      patch.Doc
	manager, subresource     string
}

func (v *version) GetNamespace() string                { return v.namespace }
func (v *version) GetName() string                     { return v.name }
func (v *version) GetUID() types.UID                   { return types.UID(v.uid) }
func (v *version) GetResourceVersion() string          { return v.rv }
func (v *version) Doc() patch.Doc                      { return v.doc }
func (v *version) Manager() (name, subresource string) { return v.manager, v.subresource }

// A change is one delta before it is recorded.
type change struct {
	seq, objectID int64
	kind          int
	action        string // of sink/postgres
	observed      time.Time
	*version
}

// A step is something that was begun and will happen to an object: a Pod is created, scheduled, started, told to end, deleted.
type step struct {
	object *object
	action string
	stage  podStage
}

// A fleet makes deltas as a cluster of a steady size does: for each Pod that goes another comes. Equal seeds give equal deltas.
type fleet struct {
	random  *rand.Rand
	kinds   [kinds]*kind
	living  [kinds][]*object
	due     []step
	watched *object              // the one with a known number of versions
	spread  func(seq int64) bool // whether this delta is one of its
	seq, rv int64
	begin   time.Time
	step    time.Duration // between two deltas
	births  int64         // as numbers for names
}

// begin is the start of the record, a midnight so that days are whole.
var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// The shares of the objects that live; the rest are Pods.
var shares = [kinds]float64{deployments: 0.08, configMaps: 0.2, leases: 0.025}

// newFleet makes a fleet whose watched object has so many versions in so many deltas.
func newFleet(live int, deltas, versions int64, perDay int) (*fleet, error) {
	all, err := newKinds()
	if err != nil {
		return nil, err
	}
	f := &fleet{
		random: rand.New(rand.NewPCG(3, 14)), kinds: all, begin: begin, rv: 1000, step: 24 * time.Hour / time.Duration(perDay),
	}
	span := max(deltas-int64(live), 1)
	nth := func(seq int64) int64 { return (seq - int64(live)) * (versions - 1) / span }
	f.spread = func(seq int64) bool { return nth(seq) > nth(seq-1) }
	rest := live
	for k := deployments; k < kinds; k++ {
		for range max(int(shares[k]*float64(live)), 1) {
			f.living[k] = append(f.living[k], f.birth(k))
			rest--
		}
	}
	for range rest {
		pod := f.birth(pods)
		f.run(pod, podRunning)
		f.living[pods] = append(f.living[pods], pod)
	}
	f.watched = f.living[deployments][0]
	return f, nil
}

func (f *fleet) birth(k int) *object {
	f.births++
	o := &object{kind: k, generation: 1, count: 3}
	o.values[holeNamespace] = "team-" + strconv.Itoa(int(f.births%40))
	o.values[holeName] = f.kinds[k].spec.Resource[:len(f.kinds[k].spec.Resource)-1] + "-6d4b75cb6d-" + strconv.FormatInt(f.births, 36)
	o.values[holeUID] = f.uid()
	o.values[holeOwner] = "5c1fd7c4-5ad4-4a35-8f23-" + fmt.Sprintf("%012x", f.births/3)
	o.values[holeNode] = "node-" + strconv.Itoa(f.random.IntN(500))
	o.values[holeIP] = fmt.Sprintf("10.244.%d.%d", f.random.IntN(250), f.random.IntN(250))
	o.values[holeTag] = "1.24.7"
	o.values[holeReady] = "True"
	o.values[holeSecret] = fmt.Sprintf("%016x", f.random.Uint64())
	o.values[holeCreated], o.values[holeChanged], o.values[holeSettled] = f.clock(), f.clock(), f.clock()
	o.manager = [kinds]string{pods: "kube-controller-manager", deployments: "helm", configMaps: "helm", leases: "kubelet"}[k]
	return o
}

func (f *fleet) uid() string {
	a, b := f.random.Uint64(), f.random.Uint64()
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", a>>32, a>>16&0xffff, a&0xfff, b>>48&0xfff, b&0xffffffffffff)
}

// run brings a Pod to a stage.
func (f *fleet) run(pod *object, stage podStage) {
	pod.stage = int(stage)
	switch stage {
	case podScheduled:
		pod.values[holeSettled], pod.manager, pod.subresource = f.clock(), "kube-scheduler", "binding"
	case podRunning:
		pod.count = 0
		pod.values[holeSettled], pod.manager, pod.subresource = f.clock(), "kubelet", "status"
	case podPending, podTerminating, podStages:
	}
}

// at is when a delta is observed.
func (f *fleet) at(seq int64) time.Time { return f.begin.Add(time.Duration(seq) * f.step) }

// clock is the time of the next delta as objects have it.
func (f *fleet) clock() string {
	return f.at(f.seq + 1).Format(time.RFC3339)
}

// first gives what the first lists show.
func (f *fleet) first() []change {
	var all []change
	for k := range f.living {
		for _, o := range f.living[k] {
			all = append(all, f.change(o, postgres.Sync))
		}
	}
	return all
}

// next gives the next delta. Of all deltas, 15 % create or delete; 22.5 % are what Pods go through on their way; the rest are updates of
// what lives.
func (f *fleet) next() change {
	if f.spread(f.seq + 1) {
		return f.update(f.watched)
	}
	switch p := f.random.Float64(); {
	case p < 0.375:
		return f.churn()
	case p < 0.715:
		// Some Pods are restless: a tenth of them have a third of the updates.
		r := f.random.Float64()
		return f.update(f.living[pods][int(float64(len(f.living[pods]))*r*r)])
	case p < 0.865:
		return f.update(f.any(leases))
	case p < 0.955:
		return f.update(f.any(deployments))
	default:
		return f.update(f.any(configMaps))
	}
}

func (f *fleet) any(k int) *object {
	for {
		if o := f.living[k][f.random.IntN(len(f.living[k]))]; o != f.watched || len(f.living[k]) == 1 {
			return o
		}
	}
}

// churn goes on with what was begun, or begins to replace a Pod by another.
func (f *fleet) churn() change {
	if len(f.due) == 0 {
		i := f.random.IntN(len(f.living[pods]))
		old := f.living[pods][i]
		fresh := f.birth(pods)
		f.living[pods][i] = f.living[pods][len(f.living[pods])-1]
		f.living[pods] = slices.Delete(f.living[pods], len(f.living[pods])-1, len(f.living[pods]))
		f.due = []step{
			{fresh, postgres.Added, podPending}, {old, postgres.Updated, podTerminating}, {fresh, postgres.Updated, podScheduled},
			{fresh, postgres.Updated, podRunning}, {old, postgres.Deleted, podTerminating},
		}
	}
	s := f.due[0]
	f.due = f.due[1:]
	if s.action == postgres.Added {
		s.object.values[holeCreated] = f.clock()
	}
	f.run(s.object, s.stage)
	if s.stage == podRunning {
		f.living[pods] = append(f.living[pods], s.object)
	}
	if s.action == postgres.Updated {
		s.object.values[holeChanged] = f.clock()
	}
	return f.change(s.object, s.action)
}

// update changes what controllers change.
func (f *fleet) update(o *object) change {
	o.values[holeChanged] = f.clock()
	switch o.kind {
	case pods:
		if o.values[holeReady] = "True"; f.random.IntN(3) == 0 {
			o.values[holeReady] = "False"
			o.count++
			o.values[holeSettled] = f.clock()
		}
	case deployments:
		o.manager, o.subresource, o.count = "kube-controller-manager", "status", f.random.IntN(4)
		if f.random.IntN(3) == 0 {
			o.generation++
			o.manager, o.subresource, o.values[holeTag] = "helm", "", "1.24."+strconv.Itoa(o.generation)
		}
	case configMaps:
		o.values[holeSecret] = fmt.Sprintf("%016x", f.random.Uint64())
	}
	return f.change(o, postgres.Updated)
}

func (f *fleet) change(o *object, action string) change {
	f.seq++
	f.rv++
	if o.id == 0 {
		o.id = f.seq
	}
	o.values[holeRV] = strconv.FormatInt(f.rv, 10)
	o.values[holeCount], o.values[holeGeneration] = strconv.Itoa(o.count), strconv.Itoa(o.generation)
	return change{
		seq: f.seq, objectID: o.id, kind: o.kind, action: action, observed: f.at(f.seq),
		version: &version{
			namespace: o.values[holeNamespace], name: o.values[holeName], uid: o.values[holeUID], rv: o.values[holeRV],
			doc: f.kinds[o.kind].texts[o.stage].fill(&o.values), manager: o.manager, subresource: o.subresource,
		},
	}
}
