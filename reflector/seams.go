package reflector

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// PagedStore is an optional interface of the store. It gets the pages of a list as they come, and the cause of the
// list. A store without it gets each list through Replace, whole.
type PagedStore interface {
	// BeginReplace is called when the first page has come. fromResourceVersion is the position so far, "" if nothing is
	// recorded.
	BeginReplace(cause delta.Cause, detail, fromResourceVersion string) error
	// ReplacePage hands over one page; resourceVersion is the list's.
	ReplacePage(list []interface{}, resourceVersion string) error
	// EndReplace is called after the store has accepted every page of one consistent list.
	EndReplace(resourceVersion string) error
	// AbortReplace is called if the list could not be completed. Nothing has vanished, and the position is unchanged. A
	// further BeginReplace may follow.
	AbortReplace()
}

// UnreadableStore is an optional interface of a PagedStore. Between BeginReplace and EndReplace it learns of objects on the
// list that could not be read, so that they do not count as vanished.
type UnreadableStore interface {
	// Unreadable gets the object's key as cache.ObjectName writes it, "" if not even that could be read.
	Unreadable(key string) error
}

// ProofStore is an optional interface of the store. Its Proved gets a position that was proved, in place of Bookmark.
// The store should keep it at once, because no server gives it a second time.
type ProofStore interface {
	Proved(resourceVersion string) error
}

// InterruptStore is an optional interface of the store. It learns when the stream cannot go on, and when it goes on
// without having missed anything. If something was missed, a list follows instead of Resumed.
type InterruptStore interface {
	Interrupted(cause delta.Cause, detail string) error
	Resumed() error
}

// outlet is the store with its optional interfaces. Errors of the store are failures of kind storeFailure. An unknown event
// is a poisonFailure.
type outlet struct {
	store     cache.ReflectorStore
	paged     PagedStore
	tolerant  UnreadableStore
	interrupt InterruptStore
	bookmark  cache.ReflectorBookmarkStore
	proof     ProofStore
	versions  cache.ResourceVersionUpdater
}

func newOutlet(store cache.ReflectorStore) outlet {
	o := outlet{store: store}
	o.paged, _ = store.(PagedStore)
	o.tolerant, _ = store.(UnreadableStore)
	o.interrupt, _ = store.(InterruptStore)
	o.bookmark, _ = store.(cache.ReflectorBookmarkStore)
	o.proof, _ = store.(ProofStore)
	o.versions, _ = store.(cache.ResourceVersionUpdater)
	return o
}

// deliver hands one event to the store.
func (o outlet) deliver(event watch.Event, resourceVersion string) error {
	switch event.Type {
	case watch.Added:
		return storeFailed("add", resourceVersion, o.store.Add(event.Object))
	case watch.Modified:
		return storeFailed("update", resourceVersion, o.store.Update(event.Object))
	case watch.Deleted:
		return storeFailed("delete", resourceVersion, o.store.Delete(event.Object))
	case watch.Bookmark:
		if o.bookmark == nil || !delta.Resumable(resourceVersion) {
			return nil
		}
		return storeFailed("bookmark", resourceVersion, o.bookmark.Bookmark(resourceVersion))
	default:
		return &failure{kind: poisonFailure, err: fmt.Errorf("unknown watch event type %q", event.Type)}
	}
}

// prove is deliver for a bookmark that no watch has sent.
func (o outlet) prove(event watch.Event, resourceVersion string) error {
	if o.proof == nil {
		return o.deliver(event, resourceVersion)
	}
	return storeFailed("proof", resourceVersion, o.proof.Proved(resourceVersion))
}

func (o outlet) beginReplace(cause delta.Cause, detail, from string) error {
	if o.paged == nil {
		return nil
	}
	return storeFailed("begin replace", from, o.paged.BeginReplace(cause, detail, from))
}

// unreadable passes the key of each object of an error to the store.
func (o outlet) unreadable(errs []error) error {
	if o.tolerant == nil {
		return nil
	}
	for _, err := range errs {
		var named interface{ ObjectName() cache.ObjectName }
		key := ""
		if errors.As(err, &named) && named.ObjectName().Name != "" {
			key = named.ObjectName().String()
		}
		if err := o.tolerant.Unreadable(key); err != nil {
			return storeFailed("unreadable", "", err)
		}
	}
	return nil
}

func (o outlet) abortReplace() {
	if o.paged != nil {
		o.paged.AbortReplace()
	}
}

func (o outlet) resync() error {
	return storeFailed("resync", "", o.store.Resync())
}

func (o outlet) interrupted(cause delta.Cause, detail string) error {
	if o.interrupt == nil {
		return nil
	}
	return storeFailed("interrupt", "", o.interrupt.Interrupted(cause, detail))
}

func (o outlet) resumed() error {
	if o.interrupt == nil {
		return nil
	}
	return storeFailed("resume", "", o.interrupt.Resumed())
}

func (o outlet) updateResourceVersion(resourceVersion string) {
	if o.versions != nil {
		o.versions.UpdateResourceVersion(resourceVersion)
	}
}

// storeFailed marks an error of the store. Nil stays nil.
func storeFailed(operation, resourceVersion string, err error) error {
	if err == nil {
		return nil
	}
	if resourceVersion != "" {
		operation += " at resource version " + resourceVersion
	}
	return &failure{kind: storeFailure, err: fmt.Errorf("store: %s: %w", operation, err)}
}
