package data

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/watch"
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

// texts are the shapes of the objects. Pods have one for each stage, first those of ReplicaSets, then those of Jobs. Jobs have
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

// An object is one that lives.
type object struct {
	kind   int
	text   int // of its kind's
	place  int // in the cluster's living of its kind
	rv     uint64
	lease  *eventLease // of an Event
	about  *object     // of a Pod: the Event that tells of its probes
	values values
}

// A task is what happens at some time.
type task struct {
	at    time.Duration // since the beginning
	order int           // of two at one time, the one that was planned first comes first
	do    func()
}

type agenda []task

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(task)) }
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = task{} // what it would do is kept no longer
	*a = (*a)[:len(*a)-1]
	return last
}

// A cluster is one at a moment, with what will happen. It belongs to one iteration.
type cluster struct {
	random  *rand.Rand
	texts   [kinds][]*text
	now     time.Duration
	rv      uint64
	agenda  agenda
	planned int
	living  [kinds][]*object
	apps    []*app
	lease   *eventLease // that new Events get

	watched bool    // whether events are told; before that, a cluster comes to life
	told    []Event // and not taken yet
}

// begin is the start of each generated cluster, a midnight.
var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func (c *cluster) after(d time.Duration, do func()) {
	c.planned++
	heap.Push(&c.agenda, task{c.now + d, c.planned, do})
}

// every plans something again and again, with as much time between as a process without memory has.
func (c *cluster) every(mean time.Duration, do func()) {
	c.after(time.Duration(c.random.ExpFloat64()*float64(mean)), func() {
		do()
		c.every(mean, do)
	})
}

// jitter is a time of about d.
func (c *cluster) jitter(d time.Duration) time.Duration {
	return d*4/5 + time.Duration(c.random.Int64N(int64(d)*2/5+1))
}

// step does what is planned next.
func (c *cluster) step() {
	next := heap.Pop(&c.agenda).(task)
	c.now = next.at
	next.do()
}

func (c *cluster) clock() string { return begin.Add(c.now).Format(time.RFC3339) }

func (c *cluster) hex(digits int) string {
	text := make([]byte, 0, digits)
	for len(text) < digits {
		text = fmt.Appendf(text, "%016x", c.random.Uint64())
	}
	return string(text[:digits])
}

func (c *cluster) uid() string {
	h := c.hex(32)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}

// suffix is what the API server adds to a generateName.
func (c *cluster) suffix() string {
	const letters = "bcdfghjklmnpqrstvwxz2456789"
	text := make([]byte, 5)
	for i := range text {
		text[i] = letters[c.random.IntN(len(letters))]
	}
	return string(text)
}

// newObject is one that is not written yet.
func (c *cluster) newObject(kind int, namespace, name string) *object {
	o := &object{kind: kind}
	o.values[holeNamespace], o.values[holeName], o.values[holeUID] = namespace, name, c.uid()
	o.values[holeGeneration] = "1"
	return o
}

func (c *cluster) create(o *object) {
	o.values[holeCreated] = c.clock()
	o.place = len(c.living[o.kind])
	c.living[o.kind] = append(c.living[o.kind], o)
	c.write(o, watch.Added)
}

func (c *cluster) update(o *object) { c.write(o, watch.Modified) }

func (c *cluster) write(o *object, what watch.EventType) {
	c.rv++
	o.values[holeChanged] = c.clock()
	switch o.kind {
	case replicaSets, deployments:
		o.text = either(o.values[holeMade] == "0")
	case events:
		o.text = either(o.values[holeNode] == "")
	}
	c.tell(o, what)
}

// either is the second of two texts, or the first.
func either(second bool) int {
	if second {
		return 1
	}
	return 0
}

func (c *cluster) remove(o *object) {
	c.rv++
	c.forget(o)
}

// forget deletes an object at the resource version of the deletion before.
func (c *cluster) forget(o *object) {
	all := c.living[o.kind]
	all[o.place] = all[len(all)-1]
	all[o.place].place = o.place
	c.living[o.kind] = all[:len(all)-1]
	all[len(all)-1] = nil
	o.place = -1
	c.tell(o, watch.Deleted)
}

func (o *object) gone() bool { return o.place < 0 }

func (c *cluster) tell(o *object, what watch.EventType) {
	o.rv = c.rv
	o.values[holeRV] = strconv.FormatUint(c.rv, 10)
	if c.watched {
		c.told = append(c.told, c.event(o, what))
	}
}

func (c *cluster) event(o *object, what watch.EventType) Event {
	return Event{
		Resource: o.kind, Type: what, Namespace: o.values[holeNamespace], Name: o.values[holeName], UID: o.values[holeUID], RV: o.rv, At: begin.Add(c.now),
		Object: c.texts[o.kind][o.text].fill(&o.values),
	}
}
