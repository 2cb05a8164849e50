package rollback

import (
	"strconv"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/reflector"
)

// ListWith says how the stream is listed in a namespace from now on; an empty one means all.
func (c *Stream) ListWith(lister func(namespace string) cache.ListerWithContext) {
	c.ask.lister.Store(&lister)
}

// Saw notes that a version of an object was served.
func (c *Stream) Saw(o *kube.Object, deleted bool) {
	revision, err := strconv.ParseUint(o.ResourceVersion, 10, 64)
	if err != nil {
		return
	}
	v := versionOf(o, revision)
	notes, beforePause := c.claim(v, deleted)
	if notes {
		c.note(v)
	}
	if beforePause != nil {
		beforePause.retry()
	}
}

// claim notes whose the revision is, and reports whether the version has to be noted as well. If there was a silence, it gives
// what was served before it.
func (c *Stream) claim(v servedVersion, deleted bool) (notes bool, beforePause *sample) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.served = time.Now()
	v.at = c.all.served
	c.claims.add(v.revision)
	c.living.remember(v, deleted)
	c.trust.window.served(v.revision)
	if c.history.rolledBack { // What a watch serves that has not ended yet is of no history that counts.
		return false, nil
	}
	v.deleted = deleted
	o := observation{stream: c, servedVersion: v, history: c.history.number} // The clock of the record is read for those that are kept.
	if c.samples.addFreshLocked(o); deleted {
		return false, nil
	}
	return c.history.certain() && c.etcd.ring.wantsNext(), c.etcd.servedLocked(o)
}

// note adds a version to the trail of its etcd.
func (c *Stream) note(v servedVersion) {
	v = v.reduced()
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.history.certain() && c.etcd.ring.wantsNext() {
		c.etcd.ring.add(observationLocked(c, v, time.Now()))
	}
}

// Reached notes up to where the stream has said what is its.
func (c *Stream) Reached(resourceVersion string) {
	position, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.all.served = time.Now()
	c.progress.reach(position, c.all.served)
}

// Watching notes that a watch has been opened.
func (c *Stream) Watching(resourceVersion string) {
	from, err := strconv.ParseUint(resourceVersion, 10, 64)
	if err != nil {
		from = 0 // opaque versions cannot be compared
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.following.denied, c.following.opened = false, time.Now()
	c.trust.window.opened(from)
}

// Closed notes that it has ended.
func (c *Stream) Closed(err error) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.trust.window.closed(c.following.opened, c.all.served, err)
	c.following.opened = time.Time{}
}

// Interrupted notes why the stream cannot be followed.
func (c *Stream) Interrupted(cause delta.Cause) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.following.denied = cause == delta.CauseForbidden || cause == delta.CauseUnauthorized || cause == delta.CauseNotFound
}

// Follow says how the stream is told that its history is no more.
func (c *Stream) Follow(notify func(proof string)) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.following.notify = notify
}

// HasLeft reports whether the stream has left a history that is no more, and was not listed since.
func (c *Stream) RolledBack() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.history.rolledBack
}

// asks reports whether the server can be asked for the stream.
func (c *Stream) canAsk() bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	return c.following.canAsk()
}

var (
	_ reflector.Revisions = (*Stream)(nil)
	_ reflector.History   = (*Stream)(nil)
)
