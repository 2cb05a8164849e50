package main

import (
	"fmt"
	"iter"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/patch"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// A version is an object at one resource version. It is a postgres.Object.
type version struct {
	namespace, name, uid, rv string
	doc                      patch.Doc
}

func (v *version) GetNamespace() string       { return v.namespace }
func (v *version) GetName() string            { return v.name }
func (v *version) GetUID() types.UID          { return types.UID(v.uid) }
func (v *version) GetResourceVersion() string { return v.rv }
func (v *version) Doc() patch.Doc             { return v.doc }

// A change is one delta before it is recorded.
type change struct {
	seq, objectID int64
	resource      int        // of the set's
	action        delta.Type // of sink/postgres
	observed      time.Time
	*version
}

// A fleet makes deltas of generated data. They are observed at even distances, so that a record has as many days as is wanted.
type fleet struct {
	set    data.Set
	live   int64
	follow func() (data.Event, error, bool) // gives the next event
	stop   func()
	ids    map[string]int64 // of living objects: seq of the first delta, by UID
	node   change           // the first version of a Node, of which there will be many
	seq    int64
	rv     string
	step   time.Duration // between two deltas
}

// begin is the start of the record, a midnight so that days are whole.
var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// newFleet makes a fleet of so many deltas, those of the first lists included. The caller calls stop.
func newFleet(seed uint64, live int, deltas int64, perDay int) (*fleet, error) {
	set, err := data.Generate(data.Settings{Seed: seed, Live: live, Events: int(deltas)})
	if err != nil {
		return nil, err
	}
	f := &fleet{set: set, ids: make(map[string]int64), step: 24 * time.Hour / time.Duration(perDay)}
	n, _ := set.Len()
	f.live = int64(n)
	f.follow, f.stop = iter.Pull2(set.Events())
	return f, nil
}

// specs are the streams.
func (f *fleet) specs() (all []postgres.StreamSpec) {
	for _, r := range f.set.Resources() {
		all = append(all, postgres.StreamSpec{Group: r.Group, Resource: r.Resource, Version: r.Version, Kind: r.Kind, Namespaced: r.Namespaced})
	}
	return all
}

// at is when a delta is observed.
func (f *fleet) at(seq int64) time.Time { return begin.Add(time.Duration(seq) * f.step) }

// first gives what the first lists show.
func (f *fleet) first() (all []change, err error) {
	newest := uint64(0)
	for e := range f.set.First() {
		c, err := f.change(e, delta.Sync)
		if err != nil {
			return nil, err
		}
		if newest = max(newest, e.RV); f.node.objectID == 0 && f.set.Resources()[e.Resource].Kind == "Node" {
			f.node = c
		}
		all = append(all, c)
	}
	f.rv = strconv.FormatUint(newest, 10)
	return all, nil
}

var actions = map[watch.EventType]delta.Type{watch.Added: delta.Added, watch.Modified: delta.Updated, watch.Deleted: delta.Deleted}

// next gives the next delta.
func (f *fleet) next() (change, error) {
	e, err, more := f.follow()
	if !more {
		return change{}, fmt.Errorf("there are no more events after delta %d", f.seq)
	}
	if err != nil {
		return change{}, err
	}
	return f.change(e, actions[e.Type])
}

func (f *fleet) change(e data.Event, action delta.Type) (change, error) {
	f.seq++
	doc, err := patch.Canonical(e.Object)
	if err != nil {
		return change{}, err
	}
	id, lives := f.ids[e.UID]
	if !lives {
		id = f.seq
		f.ids[e.UID] = id
	}
	if action == delta.Deleted {
		delete(f.ids, e.UID)
	}
	return change{
		seq: f.seq, objectID: id, resource: e.Resource, action: action, observed: f.at(f.seq),
		version: &version{
			namespace: e.Namespace, name: e.Name, uid: e.UID, rv: strconv.FormatUint(e.RV, 10), doc: doc,
		},
	}, nil
}
