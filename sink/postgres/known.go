package postgres

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/patch"
)

// Known is the set of a stream's living objects, as the record holds them together with the batches that are encoded
// and not yet committed. It is a cache.KeyListerGetter whose values are KnownObjects. Only Encode changes it.
type Known struct {
	mu        sync.RWMutex                 // protects what follows
	objects   map[string]map[string]*entry // by namespace, then name
	count     int
	rewritten int // see Sink.Rewritten
}

// A KnownObject is one version of an object in the record.
type KnownObject struct {
	namespace, name string
	entry           *entry
}

// GetNamespace returns its namespace, "" for a cluster-scoped object.
func (k KnownObject) GetNamespace() string { return k.namespace }

// GetName returns its name.
func (k KnownObject) GetName() string { return k.name }

// GetUID returns its UID.
func (k KnownObject) GetUID() types.UID { return types.UID(k.entry.uidText()) }

// GetResourceVersion returns its resource version, "" if it had none.
func (k KnownObject) GetResourceVersion() string { return k.entry.rvText() }

// Digest returns the digest of its canonical text, or zero if the text on record could not be folded or redacted.
func (k KnownObject) Digest() [16]byte { return k.entry.digest }

// Doc returns its canonical text, or nil if the text on record could not be folded or redacted.
func (k KnownObject) Doc() patch.Doc {
	if k.entry.doc == nil {
		return nil
	}
	doc, err := k.entry.text(nil)
	if err != nil {
		return nil
	}
	return doc
}

// ListKeys returns the keys of all living objects, "namespace/name" or "name", in no order.
func (k *Known) ListKeys() []string {
	k.mu.RLock()
	defer k.mu.RUnlock()
	keys := make([]string, 0, k.count)
	for namespace, objects := range k.objects {
		for name := range objects {
			keys = append(keys, joinKey(namespace, name))
		}
	}
	return keys
}

// GetByKey returns the KnownObject of a key. It never returns an error.
func (k *Known) GetByKey(key string) (value any, exists bool, err error) {
	namespace, name := splitKey(key)
	e := k.get(namespace, name)
	if e == nil {
		return nil, false, nil
	}
	return KnownObject{namespace: namespace, name: name, entry: e}, true, nil
}

// Len returns the number of living objects.
func (k *Known) Len() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.count
}

func (k *Known) get(namespace, name string) *entry {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.objects[namespace][name]
}

// put stores an entry. It copies the name each time, because the name may share the memory of a whole object. A Go map
// replaces the key on assignment, even if it holds an equal key.
func (k *Known) put(namespace, name string, e *entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	objects := k.objects[namespace]
	if objects == nil {
		if k.objects == nil {
			k.objects = make(map[string]map[string]*entry)
		}
		objects = make(map[string]*entry)
		k.objects[strings.Clone(namespace)] = objects
	}
	if k.rewritten > 0 && objects[name].rewritten() {
		k.rewritten--
	}
	if e.rewritten() {
		k.rewritten++
	}
	before := len(objects)
	objects[strings.Clone(name)] = e
	k.count += len(objects) - before
}

func (k *Known) countRewritten() int {
	k.mu.RLock()
	defer k.mu.RUnlock()
	return k.rewritten
}

func (k *Known) remove(namespace, name string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	objects := k.objects[namespace]
	e, ok := objects[name]
	if !ok {
		return
	}
	if e.rewritten() {
		k.rewritten--
	}
	k.count--
	if delete(objects, name); len(objects) == 0 {
		delete(k.objects, namespace)
	}
}

func joinKey(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// splitKey is the reverse of joinKey. In aggregated APIs a name may hold a slash; a namespace may not.
func splitKey(key string) (namespace, name string) {
	if namespace, name, ok := strings.Cut(key, "/"); ok {
		return namespace, name
	}
	return "", key
}
