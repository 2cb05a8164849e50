package stream

import (
	"fmt"
	"iter"
	"maps"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// decisions say which lives of a stream are recorded. They belong to the run. What one run has decided may wait in the queue when the
// next begins.
//
// A decision holds for a life. Namespaces and names last as long; labels do not. If a rule looks at labels, the first decision
// is on record.
//
// Rules may change between two runs of the recorder. What was recorded goes on being recorded, because to leave it out would
// look as if it were gone. What was left out is decided anew. All is decided anew if a run has left the stream within a list,
// because it is not known by whose rules that list decided.
type decisions struct {
	stream int32 // its number on record
	rules  filter.Resource
	// lives holds decisions by UID: all if rules look at labels, otherwise those that the rules would not take now. It is nil
	// before the first run.
	lives map[types.UID]bool
	// undecided are those that were left out under other rules. That is taken back on record when a list has decided anew: the rules may be changed back before.
	undecided map[types.UID]struct{}
	list      *listDecisions // nil if no list is under way
	// exclusions are to be put on record. They have a lock: the queue takes them, too.
	exclusions exclusions
}

// listDecisions are what the list under way has decided so far.
type listDecisions struct {
	shown   map[types.UID]struct{}
	leftOut map[types.UID]bool // whether they were to be decided anew
	unread  bool               // it holds others, which cannot be read
}

// remembers reports whether decisions in a namespace have to be remembered. The rules alone do not say that a recorded
// object goes on being recorded, if they look at labels or leave out the namespace.
func (d *decisions) remembers(namespace string) bool {
	return d.rules.ByLabel() || !d.rules.Allows(namespace, nil)
}

// recall takes over the decisions of the recorders before this one. Anew says that what they left out is decided anew.
func (d *decisions) recall(lives map[types.UID]bool, anew bool) {
	d.lives = lives
	if !anew {
		return
	}
	d.undecided = map[types.UID]struct{}{}
	for uid, recorded := range d.lives {
		if !recorded {
			d.undecided[uid] = struct{}{}
			delete(d.lives, uid)
		}
	}
}

// end says that all lives have ended.
func (d *decisions) end() {
	for uid := range d.lives {
		d.forget(uid)
	}
	d.takeBack(maps.Keys(d.undecided))
}

// allows decides about one object. A life that is newly left out because of its labels is added to fresh.
func (d *decisions) allows(o *kube.Object, fresh *[]*kube.Object) bool {
	decided, ok := d.lives[o.UID]
	if !ok {
		if decided = d.rules.Allows(o.Namespace, o.Labels); !decided && d.rules.ByLabel() {
			*fresh = append(*fresh, o)
		}
	}
	return decided
}

// kept gives those objects that are recorded. The decisions are on record before they take effect.
func (d *decisions) kept(list []any) ([]any, error) {
	if d.rules.Everything() {
		d.takeBack(uidsOf(list))
		return list, nil
	}
	var kept []any
	var fresh []*kube.Object
	for _, obj := range list {
		o, ok := obj.(*kube.Object)
		if !ok {
			return nil, fmt.Errorf("a %T is not an object as the API server served it", obj)
		}
		if d.allows(o, &fresh) {
			kept = append(kept, o)
		}
	}
	d.takeBack(uidsOf(kept))
	if d.rules.ByLabel() {
		d.remember(kept, fresh)
	}
	return kept, nil
}

func (d *decisions) remember(kept []any, fresh []*kube.Object) {
	for _, obj := range kept {
		d.lives[obj.(*kube.Object).UID] = true
	}
	for _, o := range fresh {
		d.lives[o.UID] = false
		_, anew := d.undecided[o.UID]
		delete(d.undecided, o.UID)
		if d.list != nil {
			d.list.leftOut[o.UID] = anew
		}
		key := cache.ObjectName{Namespace: o.Namespace, Name: o.Name}
		d.exclusions.add(postgres.Item{Stream: d.stream, Kind: postgres.Excluded, UID: o.UID, Key: key.String()})
	}
}

// forget ends a decision with its life.
func (d *decisions) forget(uid types.UID) {
	if recorded, known := d.lives[uid]; known && !recorded {
		d.exclusions.add(postgres.Item{Stream: d.stream, Kind: postgres.Unexcluded, UID: uid})
	}
	delete(d.lives, uid)
}

// over says that a life has ended.
func (d *decisions) over(o *kube.Object) {
	d.takeBack(uidsOf([]any{o}))
	d.forget(o.UID)
}

// takeBack has what was left out under other rules not be so any more, on record.
func (d *decisions) takeBack(uids iter.Seq[types.UID]) {
	if len(d.undecided) == 0 {
		return
	}
	for uid := range uids {
		if _, was := d.undecided[uid]; was {
			d.exclusions.add(postgres.Item{Stream: d.stream, Kind: postgres.Unexcluded, UID: uid})
			delete(d.undecided, uid)
		}
	}
}

// beginList begins a list. What it does not show is gone, and the decisions about it with it.
func (d *decisions) beginList() {
	d.list = &listDecisions{shown: make(map[types.UID]struct{}, len(d.lives)), leftOut: map[types.UID]bool{}}
}

// shown notes what the list under way has shown, if the rules leave something out.
func (d *decisions) shown(list []any) {
	if d.list == nil || d.rules.Everything() {
		return
	}
	for _, obj := range list {
		d.list.shown[obj.(*kube.Object).UID] = struct{}{}
	}
}

// unread says that the list holds an object that cannot be read. Its decision stands, whichever that is.
func (d *decisions) unread() {
	if d.list != nil {
		d.list.unread = true
	}
}

// endList ends a list that is complete.
func (d *decisions) endList() {
	if d.list == nil {
		d.list = &listDecisions{}
	}
	if !d.list.unread {
		for uid := range d.lives {
			if _, ok := d.list.shown[uid]; !ok {
				d.forget(uid)
			}
		}
		d.takeBack(maps.Keys(d.undecided))
	}
	d.list = nil
}

// abortList gives up a list. Whom it has left out is decided anew: the next one may be under other rules, or not be needed.
func (d *decisions) abortList() {
	if d.list == nil {
		return
	}
	for uid, anew := range d.list.leftOut {
		if !anew {
			d.forget(uid)
			continue
		}
		delete(d.lives, uid) // As before: on record it is left out.
		d.undecided[uid] = struct{}{}
	}
	d.list = nil
}

func uidsOf(list []any) iter.Seq[types.UID] {
	return func(yield func(types.UID) bool) {
		for _, obj := range list {
			if !yield(obj.(*kube.Object).UID) {
				return
			}
		}
	}
}
