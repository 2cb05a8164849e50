package kube

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kuberewind/kuberewind/patch"
)

// Object is one object from the server: its bytes, and the metadata decoded from them. It is a runtime.Object and a
// metav1.Object.
//
// Two parts of the metadata are not kept decoded. GetAnnotations reads annotations from the text, and managedFields have no
// fieldsV1. Both can be as large as the object itself, and annotations can repeat a Secret's values (I9).
//
// UID and ResourceVersion can be empty: objects of some aggregated APIs have neither. A bookmark is an Object with a
// ResourceVersion and no text.
type Object struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// JSON is the whole object as the server sent it, nil after SetDoc. It never changes and shares no memory with a read
	// buffer.
	JSON []byte

	doc    patch.Doc
	digest [16]byte
}

var (
	_ runtime.Object = (*Object)(nil)
	_ metav1.Object  = (*Object)(nil)
)

// SetDoc replaces the server's text by its canonical, redacted form. It drops the server's text, so that the object no
// longer contains anything that was redacted (I9).
func (o *Object) SetDoc(doc patch.Doc) {
	o.JSON = nil
	o.Annotations = nil
	o.doc = doc
	o.digest = patch.Digest(doc)
}

// Doc returns the canonical text, nil before SetDoc.
func (o *Object) Doc() patch.Doc { return o.doc }

// Digest returns the digest of Doc, zero before SetDoc.
func (o *Object) Digest() [16]byte { return o.digest }

// text returns the canonical text if there is one, else the server's text.
func (o *Object) text() []byte {
	if o.doc != nil {
		return o.doc
	}
	return o.JSON
}

// The fixed sizes of an Object and of an entry of its lists and maps, in bytes, as the allocator rounds them.
const (
	objectOverhead = 512
	entryOverhead  = 48
)

// Size returns about how many bytes of memory the object takes, with its decoded metadata.
func (o *Object) Size() int {
	size := objectOverhead + cap(o.JSON) + cap(o.doc)
	size += len(o.Name) + len(o.Namespace) + len(o.UID) + len(o.ResourceVersion) + len(o.GenerateName)
	for key, value := range o.Labels {
		size += entryOverhead + len(key) + len(value)
	}
	for key, value := range o.Annotations {
		size += entryOverhead + len(key) + len(value)
	}
	for _, finalizer := range o.Finalizers {
		size += entryOverhead + len(finalizer)
	}
	for _, owner := range o.OwnerReferences {
		size += 2*entryOverhead + len(owner.Name) + len(owner.UID) + len(owner.Kind) + len(owner.APIVersion)
	}
	for _, entry := range o.ManagedFields {
		size += 3*entryOverhead + len(entry.Manager) + len(entry.APIVersion)
	}
	return size
}

// GetAnnotations parses the annotations from the object's text on each call.
func (o *Object) GetAnnotations() map[string]string {
	if o.Annotations != nil || o.text() == nil {
		return o.Annotations
	}
	var partial struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	if err := json.Unmarshal(o.text(), &partial); err != nil {
		return nil
	}
	return partial.Metadata.Annotations
}

// EvidenceTime returns the newest time that the object's own metadata proves: a field manager's write, the creation, or the
// deletion request. deletionTimestamp lies in the future: the request came one grace period earlier. It returns false if
// the metadata has no time.
func (o *Object) EvidenceTime() (time.Time, bool) {
	newest := o.CreationTimestamp.Time
	for i := range o.ManagedFields {
		if at := o.ManagedFields[i].Time; at != nil && at.Time.After(newest) {
			newest = at.Time
		}
	}
	if o.DeletionTimestamp != nil {
		requested := o.DeletionTimestamp.Time
		if o.DeletionGracePeriodSeconds != nil {
			requested = requested.Add(-time.Duration(*o.DeletionGracePeriodSeconds) * time.Second)
		}
		if requested.After(newest) {
			newest = requested
		}
	}
	return newest, !newest.IsZero()
}

// AtResourceVersion returns a copy with another resource version in its metadata and its text.
func (o *Object) AtResourceVersion(rv string) (runtime.Object, error) {
	doc, err := patch.Canonical(o.text())
	if err != nil {
		return nil, err
	}
	if doc, err = patch.Set(doc, "/metadata/resourceVersion", patch.Quote([]byte(rv))); err != nil {
		return nil, err
	}
	c := &Object{TypeMeta: o.TypeMeta, JSON: doc}
	o.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.ResourceVersion = rv
	return c, nil
}

// DeepCopyObject implements runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object {
	if o == nil {
		return nil
	}
	c := &Object{TypeMeta: o.TypeMeta, JSON: bytes.Clone(o.JSON), doc: bytes.Clone(o.doc), digest: o.digest}
	o.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return c
}

// Restore makes an object from its canonical text, as passed to SetDoc.
func Restore(doc patch.Doc) (*Object, error) {
	s := restorers.Get().(*scanner)
	defer restorers.Put(s)
	o := &Object{}
	_, err := s.over(doc).item(o)
	s.over(nil)
	if err != nil {
		return nil, fmt.Errorf("restore an object: %w", err)
	}
	o.SetDoc(doc)
	return o, nil
}

// restorers pools scanners. A new scanner takes more memory than most objects.
var restorers = sync.Pool{New: func() any { return &scanner{dec: new(jsontext.Decoder)} }}
