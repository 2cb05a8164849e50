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

// decisions hold which lives of a stream are recorded. They belong to the run. When the next run begins, decisions of
// the previous one may still wait in the queue.
//
// A decision holds for a life. Namespaces and names last as long; labels do not. If a rule looks at labels, the first
// decision is recorded.
//
// Rules may change between two runs of the recorder. A recorded life stays recorded, because to exclude it would look
// like its deletion. If the rules have changed, the next list decides again about the excluded lives. If a run has
// stopped within a list, the next list does the same, because the rules of the cut list are not known.
type decisions struct {
	stream int32 // its number on record
	rules  filter.Resource
	// lives holds decisions by UID. If rules look at labels, it has all lives. Otherwise it has the lives that the
	// present rules would exclude. It is nil before the first run.
	lives map[types.UID]bool
	// undecided are lives that were excluded under other rules. When a list records one, or no longer shows it, its
	// exclusion is revoked on record. Until then it stays, because an operator may restore the old rules.
	undecided map[types.UID]struct{}
	list      *listDecisions // nil if no list is under way
	// exclusions wait to be recorded. They have a lock: the queue takes them, too.
	exclusions exclusions
}

// listDecisions are the decisions of the list under way.
type listDecisions struct {
	shown    map[types.UID]struct{}
	excluded map[types.UID]bool // whether the life was undecided before
	unread   bool               // the list has other objects, which cannot be read
}

// remembers reports whether decisions in a namespace have to be remembered. If the rules look at labels or exclude the
// namespace, they alone do not say that a recorded object stays recorded.
func (d *decisions) remembers(namespace string) bool {
	return d.rules.ByLabel() || !d.rules.Allows(namespace, nil)
}

// recall takes over the decisions of earlier recorders. again says that excluded lives are decided again.
func (d *decisions) recall(lives map[types.UID]bool, again bool) {
	d.lives = lives
	if !again {
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

// end ends all lives.
func (d *decisions) end() {
	for uid := range d.lives {
		d.forget(uid)
	}
	d.readmit(maps.Keys(d.undecided))
}

// allows decides about one object. If its labels exclude a new life, the object is added to fresh.
func (d *decisions) allows(o *kube.Object, fresh *[]*kube.Object) bool {
	decided, ok := d.lives[o.UID]
	if !ok {
		if decided = d.rules.Allows(o.Namespace, o.Labels); !decided && d.rules.ByLabel() {
			*fresh = append(*fresh, o)
		}
	}
	return decided
}

// kept returns the objects that are recorded. The decisions are recorded before they take effect.
func (d *decisions) kept(list []any) ([]any, error) {
	if d.rules.Everything() {
		d.readmit(uidsOf(list))
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
	d.readmit(uidsOf(kept))
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
		_, undecided := d.undecided[o.UID]
		delete(d.undecided, o.UID)
		if d.list != nil {
			d.list.excluded[o.UID] = undecided
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

// over ends a life.
func (d *decisions) over(o *kube.Object) {
	d.readmit(uidsOf([]any{o}))
	d.forget(o.UID)
}

// readmit revokes on record that lives were excluded under other rules.
func (d *decisions) readmit(uids iter.Seq[types.UID]) {
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

// beginList begins a list. If it does not show an object, the object is gone, and so is the decision about it.
func (d *decisions) beginList() {
	d.list = &listDecisions{shown: make(map[types.UID]struct{}, len(d.lives)), excluded: map[types.UID]bool{}}
}

// shown notes the objects that the list under way has shown, if the rules exclude anything.
func (d *decisions) shown(list []any) {
	if d.list == nil || d.rules.Everything() {
		return
	}
	for _, obj := range list {
		d.list.shown[obj.(*kube.Object).UID] = struct{}{}
	}
}

// unread notes that the list holds an object that cannot be read. It may be any object, so endList keeps all decisions.
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
		d.readmit(maps.Keys(d.undecided))
	}
	d.list = nil
}

// abortList aborts a list. The lives that it has excluded are decided again: the next list may be under other rules, or
// not be needed.
func (d *decisions) abortList() {
	if d.list == nil {
		return
	}
	for uid, undecided := range d.list.excluded {
		if !undecided {
			d.forget(uid)
			continue
		}
		delete(d.lives, uid) // As before the list: on record the life is excluded.
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
