package data

import (
	"strconv"

	"k8s.io/apimachinery/pkg/watch"
)

// An object is one that lives.
type object struct {
	kind   int
	text   int // of its kind's
	place  int // in the store's living of its kind
	rv     uint64
	lease  *eventLease // of an Event
	about  *object     // of a Pod: the Event about its probes
	values values
}

// A store holds the living objects, and publishes each write, as etcd does.
type store struct {
	chance   *chance
	schedule *schedule
	texts    [kinds][]*text
	rv       uint64
	living   [kinds][]*object

	watched bool    // whether events are published; they are not while the initial cluster is built
	told    []Event // and not taken yet
}

// newObject is one that is not written yet.
func (s *store) newObject(kind int, namespace, name string) *object {
	o := &object{kind: kind}
	o.values[holeNamespace], o.values[holeName], o.values[holeUID] = namespace, name, s.chance.uid()
	o.values[holeGeneration] = "1"
	return o
}

func (s *store) create(o *object) {
	o.values[holeCreated] = s.schedule.clock()
	o.place = len(s.living[o.kind])
	s.living[o.kind] = append(s.living[o.kind], o)
	s.write(o, watch.Added)
}

func (s *store) update(o *object) { s.write(o, watch.Modified) }

func (s *store) write(o *object, what watch.EventType) {
	s.rv++
	o.values[holeChanged] = s.schedule.clock()
	switch o.kind {
	case replicaSets, deployments:
		o.text = either(o.values[holeMade] == "0")
	case events:
		o.text = either(o.values[holeNode] == "")
	}
	s.tell(o, what)
}

// either is the second of two texts, or the first.
func either(second bool) int {
	if second {
		return 1
	}
	return 0
}

func (s *store) remove(o *object) {
	s.rv++
	s.forget(o)
}

// forget deletes an object at the resource version of the deletion before.
func (s *store) forget(o *object) {
	all := s.living[o.kind]
	all[o.place] = all[len(all)-1]
	all[o.place].place = o.place
	s.living[o.kind] = all[:len(all)-1]
	all[len(all)-1] = nil
	o.place = -1
	s.tell(o, watch.Deleted)
}

func (o *object) gone() bool { return o.place < 0 }

func (s *store) tell(o *object, what watch.EventType) {
	o.rv = s.rv
	o.values[holeRV] = strconv.FormatUint(s.rv, 10)
	if s.watched {
		s.told = append(s.told, s.event(o, what))
	}
}

func (s *store) event(o *object, what watch.EventType) Event {
	return Event{
		Resource: o.kind, Type: what, Namespace: o.values[holeNamespace], Name: o.values[holeName], UID: o.values[holeUID], RV: o.rv, At: begin.Add(s.schedule.now),
		Object: s.texts[o.kind][o.text].fill(&o.values),
	}
}
