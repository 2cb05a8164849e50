package deltafifo

import (
	"fmt"
	"strings"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// replacement is a list under way.
type replacement struct {
	feeder *feeder
	tail   *Tail

	marker delta.Marker
	source delta.Source
	seen   map[string]struct{}
	unread map[string]struct{} // on the list, but not readable; "" stands for any key
	twice  repeated
}

func newReplacement(f *feeder, tail *Tail, marker delta.Marker) *replacement {
	source := delta.SourceRelist
	if marker.Cause == delta.CauseFirstList {
		source = delta.SourceList
	}
	return &replacement{feeder: f, tail: tail, marker: marker, source: source, seen: map[string]struct{}{}, unread: map[string]struct{}{}}
}

// repeated are the keys that came more than once in a list.
type repeated struct {
	keys  []string // the first few
	count int
}

// maxNamed bounds the keys that a marker names.
const maxNamed = 10

func (r *repeated) add(key string) {
	r.count++
	if len(r.keys) < maxNamed {
		r.keys = append(r.keys, key)
	}
}

// addTo appends the excluded items to a marker's detail.
func (r *repeated) addTo(detail string) string {
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

// gone reports whether the list shows that an object no longer exists.
func (r *replacement) gone(key string) bool {
	_, seen := r.seen[key]
	_, unread := r.unread[key]
	_, unknown := r.unread[""]
	return !seen && !unread && !unknown
}

func (r *replacement) page(list []any, resourceVersion string) error {
	if err := r.checkVersion(resourceVersion); err != nil {
		return err
	}
	keys, objs := make([]string, len(list)), make([]any, len(list))
	for i, obj := range list {
		var err error
		if keys[i], objs[i], err = r.feeder.prepare(obj); err != nil {
			return err
		}
	}
	for i, key := range keys {
		if err := r.replaceOne(key, objs[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkVersion rejects a call that belongs to another list.
func (r *replacement) checkVersion(resourceVersion string) error {
	m := &r.marker
	if m.ToRV != "" && m.ToRV != resourceVersion {
		return fmt.Errorf("deltafifo: pages at resource versions %q and %q are not one consistent list", m.ToRV, resourceVersion)
	}
	m.ToRV = resourceVersion
	return nil
}

func (r *replacement) replaceOne(key string, obj any) error {
	if _, again := r.seen[key]; again {
		r.twice.add(key)
		return nil
	}
	before, exists, err := r.tail.of(key)
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
		if err := r.inferDeleted(key, before); err != nil {
			return err
		}
		count = &r.marker.Appeared
	}
	if difference != same {
		if err := r.feeder.enqueue(key, cache.Sync, source, obj, ""); err != nil {
			return err
		}
	}
	r.seen[key] = struct{}{}
	*count++
	return nil
}

// inferDeleted enqueues the deletion of an object. No watch showed the deletion.
func (r *replacement) inferDeleted(key string, last any) error {
	tombstone := cache.DeletedFinalStateUnknown{Key: key, Obj: last}
	err := r.feeder.enqueueWith(r.feeder.attach(), key, Entry{
		Delta: cache.Delta{Type: cache.Deleted, Object: tombstone}, Source: delta.SourceInferred, ListRV: r.marker.ToRV, Bytes: bytesOf(tombstone),
	})
	if err != nil {
		return err
	}
	r.marker.Vanished++
	return nil
}

// end enqueues the deletions of the objects that were not on the list, and its marker.
func (r *replacement) end(resourceVersion string) error {
	if err := r.checkVersion(resourceVersion); err != nil {
		return err
	}
	for _, key := range r.tail.unseen(r) {
		last, exists, err := r.tail.of(key)
		if err != nil {
			return err
		}
		if !exists {
			continue
		}
		if err := r.inferDeleted(key, last); err != nil {
			return err
		}
	}
	// I1, I3: the position moves, and the gap is recorded, only after all objects of the list.
	m := r.marker
	m.Detail = r.twice.addTo(m.Detail)
	return r.feeder.mark(&m, resourceVersion)
}
