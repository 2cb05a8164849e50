package rollback

import (
	"strconv"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
)

// ListWith sets the lister of the stream in a namespace; an empty one means all namespaces.
func (c *Stream) ListWith(lister func(namespace string) cache.ListerWithContext) {
	c.ask.lister.Store(&lister)
}

// Saw notes that the server served a version of an object.
func (c *Stream) Saw(o *kube.Object, deleted bool) {
	revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return
	}
	v := versionOf(o, revision)
	forRing, beforePause := c.claim(v, deleted)
	if forRing {
		c.addToRing(v)
	}
	if beforePause != nil {
		beforePause.retry()
	}
}

// claim notes that the revision is the stream's. forRing reports whether the history ring needs the version as well.
// After a pause, claim returns the newest version before it.
func (c *Stream) claim(v servedVersion, deleted bool) (forRing bool, beforePause *sample) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.servedAt = time.Now()
	v.at = c.all.servedAt
	c.trust.window.noteServed(v.revision)
	if c.history.rolledBack { // A watch that has not ended yet may still serve versions of the old history.
		return false, nil
	}
	c.claims.add(v.revision)
	c.living.remember(v, deleted)
	v.deleted = deleted
	o := observation{stream: c, servedVersion: v, historyNumber: c.history.number} // The record's clock is read only for the versions that are kept.
	if c.samples.addFreshLocked(o); deleted {
		return false, nil
	}
	return c.history.certain() && c.etcd.ring.wantsNext(), c.etcd.servedLocked(o)
}

// addToRing adds a version to the history ring of its etcd.
func (c *Stream) addToRing(v servedVersion) {
	v = v.reduced()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.history.certain() && c.etcd.ring.wantsNext() {
		c.etcd.ring.add(observationLocked(c, v, time.Now()))
	}
}

// Reached notes that the stream has delivered all its versions up to a resource version.
func (c *Stream) Reached(resourceVersion string) {
	position, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.servedAt = time.Now()
	c.progress.reach(position, c.all.servedAt)
}

// Watching notes that a watch was opened.
func (c *Stream) Watching(resourceVersion string) {
	from, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		from = 0 // opaque versions cannot be compared
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.following.denied, c.following.openedAt = false, time.Now()
	c.trust.window.noteOpened(from)
}

// Closed notes that the watch has ended.
func (c *Stream) Closed(err error) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.trust.window.noteClosed(c.following.openedAt, c.all.servedAt, err)
	c.following.openedAt = time.Time{}
}

// Interrupted notes why the stream cannot be followed.
func (c *Stream) Interrupted(cause delta.Cause) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.following.denied = cause == delta.CauseForbidden || cause == delta.CauseUnauthorized || cause == delta.CauseNotFound
}

// Follow sets the function that makes the stream's reflector list after a rollback; nil means that the stream is
// not followed.
func (c *Stream) Follow(onRollback func(proof string)) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.following.onRollback = onRollback
}

// RolledBack reports whether the stream's history is no more, and the stream was not listed since.
func (c *Stream) RolledBack() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.history.rolledBack
}

var (
	_ reflector.Revisions = (*Stream)(nil)
	_ reflector.History   = (*Stream)(nil)
)
