package deltafifo

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// Tail is the state of a stream after all held entries are committed: the known objects, as changed by the held
// entries. While a part of the stream is on disk only, nothing can be compared with it.
type Tail struct {
	feeder *feeder
	known  cache.KeyListerGetter

	listing bool // a list under way uses latestByKey; the queue's lock protects it
}

// ErrOnDisk says that a part of the stream is on disk only, so that nothing can be compared with it.
var ErrOnDisk = errors.New("deltafifo: a part of the stream is on disk")

// Vacant reports whether no object of the stream is alive after all held entries are committed. If it would have to
// read from disk for that, it returns false.
func (t *Tail) Vacant() bool {
	t.feeder.stream.feed.Lock()
	defer t.feeder.stream.feed.Unlock()
	if err := t.use(); err != nil {
		return false
	}
	defer t.release()
	for _, key := range t.unseen(&replacement{}) {
		if _, alive, err := t.of(key); alive || err != nil {
			return false
		}
	}
	return true
}

// AwaitMemory waits until nothing of the stream is on disk only. Then a list can be compared with the known objects and
// the held entries. The error is cache.ErrFIFOClosed.
func (t *Tail) AwaitMemory() error {
	t.feeder.queue.mu.Lock()
	defer t.feeder.queue.mu.Unlock()
	return t.awaitMemoryLocked()
}

// awaitMemoryLocked waits until nothing of the stream is on disk only. It returns an error if the stream is closed
// meanwhile.
func (t *Tail) awaitMemoryLocked() error {
	f := t.feeder
	for f.stream.behind > 0 {
		if f.closed || f.queue.closed {
			return cache.ErrFIFOClosed
		}
		f.stream.arrival.Wait()
	}
	return nil
}

// position returns the resource version up to which the stream is complete with all enqueued entries, and since when.
// If no list and no bookmark has passed through this queue, it returns the newest enqueued version.
func (t *Tail) position() (string, time.Time) {
	t.feeder.queue.mu.Lock()
	defer t.feeder.queue.mu.Unlock()
	st := t.feeder.stream
	return cmp.Or(st.position.Complete, st.position.Newest), st.positionedAt
}

// completeUntil returns the position of the stream, or begin if that comes earlier.
func (t *Tail) completeUntil(begin Begin) (rv string, at time.Time) {
	rv, at = t.position()
	if begin == (Begin{}) {
		return rv, at
	}
	order, known := delta.Compare(begin.ResourceVersion, rv)
	late, ahead := rv == "" || begin.Time.Before(at), known && order < 0
	if late {
		at = begin.Time
	}
	if begin.ResourceVersion != "" && (ahead || !known && late) {
		rv = begin.ResourceVersion
	}
	return rv, at
}

// unseen returns the keys, held or known, that were not on the list. They are sorted, so that equal histories give
// equal records. It reads the held keys first: an entry that is committed meanwhile is among the known ones.
func (t *Tail) unseen(r *replacement) []string {
	keys := t.pendingKeys()
	if t.known != nil {
		keys = append(keys, t.known.ListKeys()...)
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return !r.gone(key) })
	slices.Sort(keys)
	return slices.Compact(keys)
}

// of returns the state of key after all held entries. It reads the held entries first: the consumer changes
// KnownObjects before it removes entries, so that a removed entry is already known.
func (t *Tail) of(key string) (any, bool, error) {
	obj, alive, pending := t.pending(key)
	if pending || t.known == nil {
		return obj, alive, nil
	}
	return t.getKnown(key)
}

func (t *Tail) getKnown(key string) (any, bool, error) {
	obj, exists, err := t.known.GetByKey(key)
	if err != nil {
		return nil, false, fmt.Errorf("look up known object %s: %w", key, err)
	}
	return obj, exists, nil
}

// pending returns the last held state of key, as latestLocked does.
func (t *Tail) pending(key string) (obj any, alive, pending bool) {
	t.feeder.queue.mu.Lock()
	defer t.feeder.queue.mu.Unlock()
	return t.feeder.stream.latestLocked(key)
}

// pendingKeys returns the keys with a held delta.
func (t *Tail) pendingKeys() []string {
	t.feeder.queue.mu.Lock()
	defer t.feeder.queue.mu.Unlock()
	latest := t.feeder.stream.latestByKey
	keys := make([]string, 0, len(latest))
	for key := range latest {
		keys = append(keys, key)
	}
	return keys
}

func (t *Tail) use() error {
	t.feeder.queue.mu.Lock()
	defer t.feeder.queue.mu.Unlock()
	if t.feeder.stream.behind > 0 {
		return ErrOnDisk
	}
	t.feeder.stream.trackLatestLocked()
	return nil
}

func (t *Tail) release() {
	t.feeder.queue.mu.Lock()
	defer t.feeder.queue.mu.Unlock()
	t.feeder.stream.untrackLatestLocked()
}

// beginList waits until the stream is in memory, and keeps latestByKey up to date until endListLocked.
func (t *Tail) beginList() error {
	f := t.feeder
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	if f.queue.closed || f.closed {
		return cache.ErrFIFOClosed
	}
	if err := t.awaitMemoryLocked(); err != nil {
		return err
	}
	f.stream.trackLatestLocked()
	t.listing = true
	return nil
}

func (t *Tail) endListLocked() {
	if t.listing {
		t.listing = false
		t.feeder.stream.untrackLatestLocked()
	}
}
