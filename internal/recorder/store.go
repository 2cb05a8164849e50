package recorder

import (
	"fmt"
	"iter"
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/filter"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// store is where a reflector puts what it is served. It leaves out what is not to be recorded, and hands the rest to the
// stream's FIFO. It is used by one reflector.
//
// A decision holds for a life. Namespaces and names last as long; labels do not. If a rule looks at labels, the first decision
// is on record.
//
// Rules may change between two runs of the recorder. What was recorded goes on being recorded, because to leave it out would
// look as if it were gone. What was left out is decided anew. All is decided anew if a run has left the stream within a list,
// because it is not known by whose rules that list decided.
type store struct {
	*deltafifo.FIFO
	stream *stream
	run    *streamRun
	rules  filter.Resource
	// listed are the UIDs that the list under way has shown, and unread says that it holds others. Of those, leftOut were left out by this list, be it that they were to be decided anew.
	listed  map[types.UID]struct{}
	leftOut map[types.UID]bool
	unread  bool
}

func newStore(s *stream, run *streamRun) *store {
	st := &store{FIFO: run.fifo, stream: s, run: run, rules: s.rules}
	if s.lives == nil {
		st.recall()
	}
	if s.ended != "" { // and all lives with it
		for uid := range s.lives {
			st.forget(uid)
		}
		st.takeBack(maps.Keys(s.undecided))
	}
	return st
}

// recall takes over the decisions of the recorders before this one. What they left out under other rules is decided anew.
func (s *store) recall() {
	if left := s.stream.left; left != nil {
		s.stream.lives = left.Lives
	} else {
		s.stream.lives = s.stream.Decided()
	}
	if s.stream.listedUnder == s.rules.String() && !s.stream.listUnended() {
		return
	}
	s.stream.undecided = map[types.UID]struct{}{}
	for uid, recorded := range s.stream.lives {
		if !recorded {
			s.stream.undecided[uid] = struct{}{}
			delete(s.stream.lives, uid)
		}
	}
}

// listUnended reports whether an earlier recorder has left the stream within a list. Some decisions may be by that recorder's
// rules. The list that is due takes them anew.
func (s *stream) listUnended() bool {
	switch {
	case s.left != nil && s.left.Listing:
		return true
	case s.left != nil && s.left.Rules != nil:
		return false // It has ended in the spool.
	}
	return s.record.Position() == ""
}

// Decided gives the decisions that are on record.
func (s *stream) Decided() map[types.UID]bool {
	lives := map[types.UID]bool{}
	for _, uid := range s.record.ExcludedUIDs() {
		lives[uid] = false
	}
	for _, key := range s.record.Known().ListKeys() {
		known, ok, _ := s.record.Known().GetByKey(key)
		if !ok {
			continue
		}
		object := known.(postgres.KnownObject)
		if s.Remembers(object.GetNamespace()) {
			lives[object.GetUID()] = true
		}
	}
	return lives
}

// Remembers reports whether decisions in a namespace have to be remembered. The rules alone do not say that a recorded
// object goes on being recorded, if they look at labels or leave out the namespace.
func (s *stream) Remembers(namespace string) bool {
	return s.rules.ByLabel() || !s.rules.Allows(namespace, nil)
}

// recordable decides about one object. A life that is newly left out because of its labels is added to fresh.
func (s *store) recordable(o *kube.Object, fresh *[]*kube.Object) bool {
	decided, ok := s.stream.lives[o.UID]
	if !ok {
		if decided = s.rules.Allows(o.Namespace, o.Labels); !decided && s.rules.ByLabel() {
			*fresh = append(*fresh, o)
		}
	}
	return decided
}

// partition splits objects into what is recorded and the rest. The decisions are on record before they take effect.
func (s *store) partition(list []any) ([]any, error) {
	var kept []any
	var fresh []*kube.Object
	for _, obj := range list {
		o, ok := obj.(*kube.Object)
		if !ok {
			return nil, fmt.Errorf("a %T is not an object as the API server served it", obj)
		}
		if s.recordable(o, &fresh) {
			kept = append(kept, o)
		}
	}
	s.takeBack(uidsOf(kept))
	if s.rules.ByLabel() {
		s.remember(kept, fresh)
	}
	return kept, nil
}

func (s *store) remember(kept []any, fresh []*kube.Object) {
	for _, obj := range kept {
		s.stream.lives[obj.(*kube.Object).UID] = true
	}
	for _, o := range fresh {
		s.stream.lives[o.UID] = false
		_, anew := s.stream.undecided[o.UID]
		delete(s.stream.undecided, o.UID)
		if s.listed != nil {
			s.leftOut[o.UID] = anew
		}
		key := cache.ObjectName{Namespace: o.Namespace, Name: o.Name}
		s.stream.exclusions.add(postgres.Item{Stream: s.stream.record.ID(), Kind: postgres.Excluded, UID: o.UID, Key: key.String()})
	}
}

// pass gives the object to next, or, when it is left out, moves the position past it.
func (s *store) pass(obj any, next func(any) error) error {
	if s.rules.Everything() {
		s.takeBack(uidsOf([]any{obj}))
		return next(obj)
	}
	kept, err := s.partition([]any{obj})
	if err != nil {
		return err
	}
	if len(kept) == 1 {
		return next(obj)
	}
	return s.Pass(obj.(*kube.Object).ResourceVersion)
}

// Add implements cache.ReflectorStore.
func (s *store) Add(obj any) error { return s.saw(obj, s.pass(obj, s.FIFO.Add)) }

// Update implements cache.ReflectorStore.
func (s *store) Update(obj any) error { return s.saw(obj, s.pass(obj, s.FIFO.Update)) }

// saw notes whose the revision is of what was accepted, also where it is left out.
func (s *store) saw(obj any, err error) error {
	if o, ok := obj.(*kube.Object); ok && err == nil {
		s.stream.etcd.Saw(o, false)
	}
	return err
}

// Delete implements cache.ReflectorStore. The life is over, and with it the decision.
func (s *store) Delete(obj any) error {
	if err := s.pass(obj, s.FIFO.Delete); err != nil {
		return err
	}
	if o, ok := obj.(*kube.Object); ok {
		s.takeBack(uidsOf([]any{o}))
		s.forget(o.UID)
		s.stream.etcd.Saw(o, true)
	}
	return nil
}

// Bookmark implements cache.ReflectorBookmarkStore.
func (s *store) Bookmark(resourceVersion string) error {
	if err := s.FIFO.Bookmark(resourceVersion); err != nil {
		return err
	}
	s.stream.excused("")
	return nil
}

// Proved implements reflector.ProofStore.
func (s *store) Proved(resourceVersion string) error {
	if err := s.FIFO.Proved(resourceVersion); err != nil {
		return err
	}
	s.stream.excused("")
	return nil
}

func (s *store) forget(uid types.UID) {
	if recorded, known := s.stream.lives[uid]; known && !recorded {
		s.stream.exclusions.add(postgres.Item{Stream: s.stream.record.ID(), Kind: postgres.Unexcluded, UID: uid})
	}
	delete(s.stream.lives, uid)
}

// takeBack has what was left out under other rules not be so any more, on record.
func (s *store) takeBack(uids iter.Seq[types.UID]) {
	if len(s.stream.undecided) == 0 {
		return
	}
	for uid := range uids {
		if _, was := s.stream.undecided[uid]; was {
			s.stream.exclusions.add(postgres.Item{Stream: s.stream.record.ID(), Kind: postgres.Unexcluded, UID: uid})
			delete(s.stream.undecided, uid)
		}
	}
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

// ReplacePage takes one page of a list.
func (s *store) ReplacePage(list []any, resourceVersion string) error {
	kept, err := s.filterPage(list)
	if err != nil {
		return err
	}
	// The queue changes the objects; then they are as they are recorded.
	if err := s.FIFO.ReplacePage(kept, resourceVersion); err != nil {
		return err
	}
	s.stream.etcd.Shown(list)
	return nil
}

// Replace implements cache.ReflectorStore.
func (s *store) Replace(list []any, resourceVersion string) error {
	kept, err := s.filterPage(list)
	if err != nil {
		return err
	}
	return s.FIFO.Replace(kept, resourceVersion)
}

func (s *store) filterPage(list []any) ([]any, error) {
	if s.rules.Everything() {
		s.takeBack(uidsOf(list))
		return list, nil
	}
	kept, err := s.partition(list)
	if err == nil && s.listed != nil {
		for _, obj := range list {
			s.listed[obj.(*kube.Object).UID] = struct{}{}
		}
	}
	return kept, err
}

// BeginReplace begins a list. What it does not show is gone, and the decisions about it with it.
func (s *store) BeginReplace(cause delta.Cause, detail, fromResourceVersion string) error {
	cause, detail = s.because(cause, detail)
	s.endList()
	s.listed, s.leftOut = make(map[types.UID]struct{}, len(s.stream.lives)), map[types.UID]bool{}
	s.run.listCause = cause
	s.run.listing.Store(true)
	s.run.returns()
	s.stream.etcd.Listing(cause)
	if cause != delta.CauseFirstList {
		// I3: what a list shows is recorded before its end, and the end may not come. So the gap is on record first.
		if err := s.interrupt(cause, detail); err != nil {
			return err
		}
	}
	return s.FIFO.BeginReplace(cause, detail, fromResourceVersion)
}

// Unread says that the list holds an object that cannot be read. Its decision stands, whichever that is.
func (s *store) Unread(key string) error {
	s.unread = true
	return s.FIFO.Unread(key)
}

// EndReplace ends it.
func (s *store) EndReplace(resourceVersion string) error {
	for uid := range s.stream.lives {
		if _, ok := s.listed[uid]; !ok && !s.unread {
			s.forget(uid)
		}
	}
	if !s.unread {
		s.takeBack(maps.Keys(s.stream.undecided))
	}
	s.endList()
	if err := s.FIFO.EndReplace(resourceVersion); err != nil {
		return err
	}
	s.stream.interrupted, s.stream.listedUnder = "", s.rules.String()
	s.stream.excused("")
	s.stream.etcd.Listed(resourceVersion)
	s.run.listDetail = ""
	s.run.listing.Store(false)
	s.stream.settle()
	return nil
}

// AbortReplace gives up a list. Whom it has left out is decided anew: the next one may be under other rules, or not be needed.
func (s *store) AbortReplace() {
	for uid, anew := range s.leftOut {
		if !anew {
			s.forget(uid)
			continue
		}
		delete(s.stream.lives, uid) // As before: on record it is left out.
		s.stream.undecided[uid] = struct{}{}
	}
	s.endList()
	s.FIFO.AbortReplace()
}

func (s *store) endList() { s.listed, s.leftOut, s.unread = nil, nil, false }

// endsWithin is how soon after the end of its watch a resource is known not to be served any more, if that ended the watch.
const endsWithin = 5 * time.Second

// Interrupted says why the stream cannot be followed.
func (s *store) Interrupted(cause delta.Cause, detail string) error {
	if err := s.interrupt(cause, detail); err != nil {
		return err
	}
	if cause == delta.CauseNotFound {
		s.run.leaves(s.stream.interrupted == "" && !s.run.listing.Load() && time.Since(time.Unix(0, s.run.closed.Load())) < endsWithin)
	} else {
		s.run.returns() // or nothing is known of that
	}
	s.stream.interrupted = cause
	s.stream.etcd.Interrupted(cause)
	s.stream.settle()
	return nil
}

// interrupt puts it on record. I3: what was served after a history had gone backwards, and before that was noticed, is not complete.
func (s *store) interrupt(cause delta.Cause, detail string) error {
	if cause == delta.CauseHistoryReversed {
		return s.FIFO.InterruptedSince(cause, detail, s.stream.etcd.ServedUntil())
	}
	return s.FIFO.Interrupted(cause, detail)
}

// Resumed says that it can, and that nothing was missed.
func (s *store) Resumed() error {
	if err := s.FIFO.Resumed(); err != nil {
		return err
	}
	s.stream.interrupted = ""
	s.run.returns()
	return nil
}

var _ cache.ReflectorStore = (*store)(nil)
