package reflector

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// recoverStep is after how many revisions it is tried to watch again: the
	// server's own history may begin there.
	recoverStep = 64
	// recoverObjects is how many objects a resource may have: they are read
	// once for each revision.
	recoverObjects = 500
	// recoverAtOnce is how many lists are asked for at a time, and held.
	recoverAtOnce = 8
)

// recover brings versions after the position to the store although no watch can
// give them any more, and reports whether there is a later place to watch from.
//
// What an API server can watch begins when it first asked etcd for the
// resource: at its start, or after a new resource's definition. etcd knows
// more, and lists at exact resource versions show it (I3): each revision
// after the position is listed, and what differs from the one before is what a
// watch would have sent. An object that is deleted between two revisions is
// served as it was before, with the resource version of its end; so it is here.
//
// It is an error if the store fails, or the context ends. Whatever else goes
// wrong leaves the position at the last version that was brought.
func (r *Reflector) recover(ctx context.Context) (bool, error) {
	from, err := strconv.ParseUint(r.at.resumeFrom(), 10, 64)
	if err != nil || r.health.recovered >= r.options.RecoverRevisions {
		return false, nil //nolint:nilerr // opaque versions cannot be counted
	}
	newest, err := r.source.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, ctx.Err()
	}
	p, err := r.understand(newest)
	if err != nil {
		return false, nil //nolint:nilerr // the list that follows will say so
	}
	to, err := strconv.ParseUint(p.rv, 10, 64)
	if err != nil || to <= from || to-from > uint64(r.options.RecoverRevisions-r.health.recovered) {
		return false, nil //nolint:nilerr // too far, or not to be counted
	}
	base, err := r.listExactly(ctx, from)
	if err != nil || r.provisional && len(base) > 0 {
		return false, ctx.Err()
	}
	to = min(to, from+recoverStep)
	err = r.recoverBetween(ctx, base, from, to)
	if kindOf(err) == storeFailure || ctx.Err() != nil {
		return false, err
	}
	if err != nil {
		r.log.InfoContext(ctx, "history could be recovered in part only", "from", from, "to", to, "reached", r.at.rv, "error", err)
		return false, nil
	}
	r.health.recovered += int(to - from)
	r.log.InfoContext(ctx, "history recovered", "from", from, "to", to)
	return true, nil
}

// snapshot is what a resource held at one revision.
type snapshot map[identity]runtime.Object

func (s snapshot) identities() []identity {
	return slices.SortedFunc(maps.Keys(s), func(a, b identity) int {
		return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.uid, b.uid))
	})
}

// recoverBetween brings the revisions after from, up to to.
func (r *Reflector) recoverBetween(ctx context.Context, base snapshot, from, to uint64) error {
	for from < to {
		snapshots := make([]snapshot, min(recoverAtOnce, to-from))
		g, listing := errgroup.WithContext(ctx)
		for i := range snapshots {
			g.Go(func() (err error) {
				snapshots[i], err = r.listExactly(listing, from+1+uint64(i))
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		for _, next := range snapshots {
			from++
			if err := r.bringRevision(base, next, strconv.FormatUint(from, 10)); err != nil {
				return err
			}
			base = next
		}
	}
	return r.bring(watch.Event{Type: watch.Bookmark, Object: &metav1.PartialObjectMetadata{
		ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.FormatUint(to, 10)}}})
}

// listExactly gives what the resource held at a revision.
func (r *Reflector) listExactly(ctx context.Context, revision uint64) (snapshot, error) {
	rv := strconv.FormatUint(revision, 10)
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	list, err := r.source.ListWithContext(ctx, metav1.ListOptions{
		Limit: recoverObjects, ResourceVersion: rv, ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	if err != nil {
		return nil, err
	}
	p, err := r.understand(list)
	switch {
	case err != nil:
		return nil, err
	case p.rv != rv:
		return nil, fmt.Errorf("asked for a list at exactly %s, the server gave one at %q", rv, p.rv)
	case p.next != "":
		return nil, fmt.Errorf("there are more than %d objects", recoverObjects)
	case len(p.undecodable) > 0:
		return nil, p.undecodable[0]
	}
	held := make(snapshot, len(p.items))
	for _, item := range p.items {
		object, ok := item.(runtime.Object)
		if !ok {
			return nil, fmt.Errorf("an item of the list is a %T", item)
		}
		metadata, err := r.expectation.metadata(object)
		if err != nil {
			return nil, err
		}
		held[identityOf(metadata)] = object
	}
	return held, nil
}

// bringRevision brings what changed at one revision.
func (r *Reflector) bringRevision(before, now snapshot, rv string) error {
	for _, id := range before.identities() {
		if _, lives := now[id]; lives {
			continue
		}
		last, err := atResourceVersion(before[id], rv)
		if err != nil {
			return err
		}
		if err := r.bring(watch.Event{Type: watch.Deleted, Object: last}); err != nil {
			return err
		}
	}
	for _, id := range now.identities() {
		kind := watch.Modified
		known, lived := before[id]
		switch {
		case !lived:
			kind = watch.Added
		case resourceVersionOf(known) == resourceVersionOf(now[id]):
			continue
		}
		// The store may change what it gets; the next revision is held against this.
		if err := r.bring(watch.Event{Type: kind, Object: now[id].DeepCopyObject()}); err != nil {
			return err
		}
	}
	return nil
}

// bring is handle for an event that no watch has sent. The history goes on with
// it, so a stream that was interrupted no longer is.
func (r *Reflector) bring(event watch.Event) error {
	object, err := meta.Accessor(event.Object)
	if err != nil {
		return err
	}
	if r.at.repeats(event.Type, object, r.clock.Now()) {
		return nil
	}
	if r.health.interrupted != "" {
		if err := r.out.resumed(); err != nil {
			return err
		}
		r.health.interrupted = ""
	}
	if err := r.out.deliver(event, object.GetResourceVersion()); err != nil {
		return err
	}
	r.provisional = false
	if r.at.saw(event.Type, object, r.clock.Now()) {
		r.publish()
	}
	r.out.updateResourceVersion(r.at.rv)
	return nil
}

func resourceVersionOf(object runtime.Object) string {
	metadata, err := meta.Accessor(object)
	if err != nil {
		return ""
	}
	return metadata.GetResourceVersion()
}

// atResourceVersion is an object with another resource version. An object that
// keeps its bytes knows how to change them.
func atResourceVersion(object runtime.Object, rv string) (runtime.Object, error) {
	if raw, ok := object.(interface {
		AtResourceVersion(rv string) (runtime.Object, error)
	}); ok {
		return raw.AtResourceVersion(rv)
	}
	other := object.DeepCopyObject()
	metadata, err := meta.Accessor(other)
	if err != nil {
		return nil, err
	}
	metadata.SetResourceVersion(rv)
	return other, nil
}
