package state

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

// An Entry is one object.
type Entry struct {
	Namespace, Name string
	APIVersion      string // of the text, as the API server sent it to the recorder
	Body            []byte // the object's JSON without apiVersion and kind
	id              int64
}

// Key returns the sort key of lists.
func (e *Entry) Key() string { return Key(e.Namespace, e.Name) }

// Key returns the sort key of an object in a list.
func Key(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// Doc returns the whole object. The caller knows its kind.
func (e *Entry) Doc(kind string) []byte { return Whole(nil, e.APIVersion, kind, e.Body) }

// Whole appends a body with its apiVersion and kind.
func Whole(dst []byte, apiVersion, kind string, body []byte) []byte {
	dst = append(dst, `{"kind":"`...)
	dst = append(dst, kind...) // kinds and versions need no escaping
	dst = append(dst, `","apiVersion":"`...)
	dst = append(dst, apiVersion...)
	dst = append(dst, '"')
	if len(body) > len("{}") {
		dst = append(dst, ',')
	}
	return append(dst, body[1:]...)
}

// A State is a resource at one point of the record.
type State struct {
	Seq     int64    // the last delta that it includes
	Damaged []string // why objects are missing
	entries []Entry
	keys    []string // of entries
	size    int64
}

// Len returns the number of objects.
func (s *State) Len() int { return len(s.entries) }

// Size returns its size in bytes, with the texts that it shares.
func (s *State) Size() int64 { return s.size }

// Get returns one object, nil if it does not exist.
func (s *State) Get(namespace, name string) *Entry {
	if i, ok := slices.BinarySearch(s.keys, Key(namespace, name)); ok {
		return &s.entries[i]
	}
	return nil
}

// Range returns the objects of a namespace ("" for all) from a key on ("" for the first).
func (s *State) Range(namespace, from string) []Entry {
	first, end := 0, len(s.entries)
	if namespace != "" {
		first, _ = slices.BinarySearch(s.keys, namespace+"/")
		end, _ = slices.BinarySearch(s.keys, namespace+"0") // '0' follows '/'
	}
	if from != "" {
		start, _ := slices.BinarySearch(s.keys, from)
		first = min(max(first, start), end)
	}
	return s.entries[first:end]
}

// Prepare changes an object for its readers. Its result must be canonical.
type Prepare func(patch.Doc) (patch.Doc, error)

// Build reads a resource at a point.
func Build(ctx context.Context, record Record, p history.Point, scope history.Scope, prepare Prepare) (*State, error) {
	s := &State{Seq: p.Seq}
	var mu sync.Mutex // protects s: several goroutines emit objects
	damaged := func(d *history.DamagedError) {
		mu.Lock()
		defer mu.Unlock()
		s.Damaged = append(s.Damaged, d.Error())
	}
	_, err := record.Rebuild(ctx, p, scope, history.RebuildOptions{Damaged: damaged}, func(o history.Object) error {
		e, err := newEntry(o.Namespace, o.Name, o.ObjectID, o.Doc, prepare)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		s.entries = append(s.entries, e)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(s.entries, func(a, b Entry) int { return cmp.Compare(a.Key(), b.Key()) })
	slices.Sort(s.Damaged)
	s.measure()
	return s, nil
}

// Advance returns the State after some versions of the resource, of which the last has this seq. If it returns an error, a
// version cannot be folded, and the caller must build the State.
func (s *State) Advance(versions iter.Seq2[history.Version, error], seq int64, prepare Prepare) (*State, error) {
	changed := map[string]*Entry{} // nil if it was deleted
	for v, err := range versions {
		if err != nil {
			return nil, err
		}
		key := Key(v.Namespace, v.Name)
		if v.Type == delta.Deleted {
			if e := s.at(changed, key); e != nil && e.id == v.ObjectID {
				changed[key] = nil
			}
			continue
		}
		e, err := newEntry(v.Namespace, v.Name, v.ObjectID, v.Doc, prepare)
		if err != nil {
			return nil, err
		}
		changed[key] = &e
	}
	next := &State{Seq: seq, Damaged: s.Damaged, entries: make([]Entry, 0, len(s.entries)+len(changed))}
	for i := range s.entries {
		if _, ok := changed[s.keys[i]]; !ok {
			next.entries = append(next.entries, s.entries[i])
		}
	}
	for _, e := range changed {
		if e != nil {
			next.entries = append(next.entries, *e)
		}
	}
	slices.SortFunc(next.entries, func(a, b Entry) int { return cmp.Compare(a.Key(), b.Key()) })
	next.measure()
	return next, nil
}

func (s *State) at(changed map[string]*Entry, key string) *Entry {
	if e, ok := changed[key]; ok {
		return e
	}
	if i, ok := slices.BinarySearch(s.keys, key); ok {
		return &s.entries[i]
	}
	return nil
}

// entryBytes is the memory of an Entry without its text and its key.
const entryBytes = 128

func (s *State) measure() {
	s.keys = make([]string, len(s.entries))
	for i := range s.entries {
		s.keys[i] = s.entries[i].Key()
		s.size += int64(len(s.entries[i].Body)+2*len(s.keys[i])) + entryBytes
	}
}

// newEntry copies what it keeps.
func newEntry(namespace, name string, id int64, doc patch.Doc, prepare Prepare) (Entry, error) {
	if prepare != nil {
		var err error
		if doc, err = prepare(doc); err != nil {
			return Entry{}, err
		}
	}
	e := Entry{Namespace: strings.Clone(namespace), Name: strings.Clone(name), id: id}
	e.APIVersion, e.Body = Split(doc)
	return e, nil
}

// Split separates the apiVersion from an object, and removes its kind. The body is a copy.
func Split(doc patch.Doc) (apiVersion string, body []byte) {
	body = append(make([]byte, 0, len(doc)), '{')
	for key, value := range patch.Members(doc) {
		switch string(key) {
		case "apiVersion":
			text, _ := patch.Unquote(value)
			apiVersion = string(text)
			continue
		case "kind":
			continue
		}
		if len(body) > 1 {
			body = append(body, ',')
		}
		body = append(body, '"')
		body = append(body, key...)
		body = append(body, `":`...)
		body = append(body, value...)
	}
	return apiVersion, append(body, '}')
}
