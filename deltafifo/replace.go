package deltafifo

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

var errNotReplacing = errors.New("deltafifo: a page or the end of a list without BeginReplace")

// replacement is a list that is being taken in.
type replacement struct {
	marker delta.Marker
	source delta.Source
	seen   map[string]struct{}
	unread map[string]struct{} // on the list, but not readable; "" stands for any key
	twice  repeated
}

// repeated are keys that came more than once in a list.
type repeated struct {
	keys  []string // the first few
	count int
}

// maxConfessed bounds the keys that a marker names.
const maxConfessed = 10

func (r *repeated) add(key string) {
	r.count++
	if len(r.keys) < maxConfessed {
		r.keys = append(r.keys, key)
	}
}

// confess appends what was left out to a marker's detail.
func (r *repeated) confess(detail string) string {
	if r.count == 0 {
		return detail
	}
	if detail != "" {
		detail += "; "
	}
	detail += fmt.Sprintf("%d items repeat a key of the same list and were left out: %s", r.count, strings.Join(r.keys, ", "))
	if r.count > len(r.keys) {
		detail += ", …"
	}
	return detail
}

// Replace takes in a whole list, as a reflector gives it that does not list page by page.
func (f *FIFO) Replace(list []interface{}, resourceVersion string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	from, _ := f.position()
	cause := delta.CauseFirstList
	if from != "" || f.isPopulated() {
		cause = delta.CauseRelist
	}
	if err := f.begin(cause, "", from); err != nil {
		return err
	}
	err := f.page(list, resourceVersion)
	if err == nil {
		err = f.end(resourceVersion)
	}
	f.abort() // Without effect if it has ended.
	return err
}

// BeginReplace announces a list, why it is needed, and the position before it. A list that has not ended is aborted.
func (f *FIFO) BeginReplace(cause delta.Cause, detail, fromResourceVersion string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.begin(cause, detail, fromResourceVersion)
}

// ReplacePage takes in a page. All pages are of one list, at one resource version. Objects that are not recorded as they
// are become Sync deltas; where the UID differs, after an inferred Deleted of the former object. If one object of
// the page cannot be transformed or has no key, nothing of the page is enqueued. It blocks until there is room.
func (f *FIFO) ReplacePage(list []interface{}, resourceVersion string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.page(list, resourceVersion)
}

// Unread says that an object is on the list which could not be read: it has not vanished. With the key "" it may be any
// object, and none is taken for vanished.
func (f *FIFO) Unread(key string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	if f.replacing == nil {
		return errNotReplacing
	}
	f.replacing.unread[key] = struct{}{}
	return nil
}

// gone reports whether the list says that an object is no longer there.
func (r *replacement) gone(key string) bool {
	_, seen := r.seen[key]
	_, unread := r.unread[key]
	_, unknown := r.unread[""]
	return !seen && !unread && !unknown
}

// EndReplace says that the list is complete: what was not on it becomes inferred Deleted deltas, and a marker moves
// the position to the list's resource version. It blocks until there is room. After an error it may be called again.
func (f *FIFO) EndReplace(resourceVersion string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.end(resourceVersion)
}

// AbortReplace gives up a list. What its pages showed stays, because it was there; nothing has vanished; the position
// is where it was.
func (f *FIFO) AbortReplace() {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	f.abort()
}

func (f *FIFO) begin(cause delta.Cause, detail, from string) error {
	f.abort()
	_, at := f.position()
	r := &replacement{
		marker: delta.Marker{Kind: delta.Replaced, Cause: cause, Detail: detail, FromRV: from, FromTime: at, Rules: f.rules},
		source: delta.SourceRelist,
		seen:   map[string]struct{}{},
		unread: map[string]struct{}{},
	}
	if cause == delta.CauseFirstList {
		r.source = delta.SourceList
	}
	q := f.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || f.closed {
		return cache.ErrFIFOClosed
	}
	// What the list is compared with must be in memory.
	if err := f.awaitMemoryLocked(); err != nil {
		return err
	}
	f.stream.useTailsLocked()
	f.usesTails = true
	f.replacing = r
	return nil
}

func (f *FIFO) abort() {
	f.replacing = nil
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	f.releaseTailsLocked()
}

func (f *FIFO) releaseTailsLocked() {
	if f.usesTails {
		f.usesTails = false
		f.stream.releaseTailsLocked()
	}
}

func (f *FIFO) page(list []any, resourceVersion string) error {
	if err := f.checkVersion(resourceVersion); err != nil {
		return err
	}
	keys, objs := make([]string, len(list)), make([]any, len(list))
	for i, obj := range list {
		var err error
		if keys[i], objs[i], err = f.prepare(obj); err != nil {
			return err
		}
	}
	for i, key := range keys {
		if err := f.replaceOne(f.replacing, key, objs[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion makes sure that all calls of one replacement are about one list.
func (f *FIFO) checkVersion(resourceVersion string) error {
	if f.replacing == nil {
		return errNotReplacing
	}
	m := &f.replacing.marker
	if m.ToRV != "" && m.ToRV != resourceVersion {
		return fmt.Errorf("deltafifo: pages at resource versions %q and %q are not one consistent list", m.ToRV, resourceVersion)
	}
	m.ToRV = resourceVersion
	return nil
}

func (f *FIFO) replaceOne(r *replacement, key string, obj any) error {
	if _, again := r.seen[key]; again {
		r.twice.add(key)
		return nil
	}
	before, exists, err := f.tail(key)
	if err != nil {
		return err
	}
	difference, source, count := changed, r.source, &r.marker.Appeared
	if exists {
		difference, count = compare(before, obj), &r.marker.Changed
	}
	switch difference {
	case changed:
	case same:
		count = &r.marker.Unchanged
	case reinterpreted:
		source = delta.SourceSchema
	case recreated:
		if err := f.inferDeleted(r, key, before); err != nil {
			return err
		}
		count = &r.marker.Appeared
	}
	if difference != same {
		if err := f.enqueue(key, cache.Sync, source, obj, ""); err != nil {
			return err
		}
	}
	r.seen[key] = struct{}{}
	*count++
	return nil
}

// inferDeleted enqueues the deletion of an object that nobody saw being deleted.
func (f *FIFO) inferDeleted(r *replacement, key string, last any) error {
	tombstone := cache.DeletedFinalStateUnknown{Key: key, Obj: last}
	err := f.enqueueWith(f.attach(), key, Entry{
		Delta: cache.Delta{Type: cache.Deleted, Object: tombstone}, Source: delta.SourceInferred, ListRV: r.marker.ToRV, Bytes: bytesOf(tombstone),
	})
	if err != nil {
		return err
	}
	r.marker.Vanished++
	return nil
}

func (f *FIFO) end(resourceVersion string) error {
	if err := f.checkVersion(resourceVersion); err != nil {
		return err
	}
	r := f.replacing
	for _, key := range f.unseen(r) {
		last, exists, err := f.tail(key)
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		if err := f.inferDeleted(r, key, last); err != nil {
			return err
		}
	}
	// I1, I3: the position moves, and the gap is on record, only behind all that the list showed.
	m := r.marker
	m.Detail = r.twice.confess(m.Detail)
	if err := f.enqueueWith(f.attach(), "", Entry{Marker: &m, Position: resourceVersion, Bytes: entryBytes}); err != nil {
		return err
	}
	f.interruption = interruption{said: true}
	f.abort()
	f.populate()
	return nil
}

func (f *FIFO) isPopulated() bool {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	return f.populated
}

func (f *FIFO) populate() {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	if !f.populated {
		f.populatedLocked(f.deltas)
	}
}
