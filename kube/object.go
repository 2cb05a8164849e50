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

// Object is one object as the server served it: its bytes, and the metadata decoded from them. It is a runtime.Object and a
// metav1.Object.
//
// Two parts of the metadata are not held decoded. GetAnnotations reads annotations from the text, and managedFields come
// without fieldsV1. Both can be as large as the object itself, and annotations can repeat a Secret's values (I9).
//
// UID and ResourceVersion can be empty: some aggregated APIs have neither. A bookmark is an Object with a ResourceVersion and
// no text.
type Object struct {
	metav1.TypeMeta
	metav1.ObjectMeta

	// JSON is the whole object as served, nil once SetDoc was called. It is never
	// changed and never shared with a read buffer.
	JSON []byte

	doc    patch.Doc
	digest [16]byte
}

var (
	_ runtime.Object = (*Object)(nil)
	_ metav1.Object  = (*Object)(nil)
)

// SetDoc replaces the served text by its canonical, redacted form. The served
// text is dropped: from here on the object holds nothing that was redacted (I9).
func (o *Object) SetDoc(doc patch.Doc) {
	o.JSON = nil
	o.Annotations = nil
	o.doc = doc
	o.digest = patch.Digest(doc)
}

// Doc is the canonical text, nil until SetDoc.
func (o *Object) Doc() patch.Doc { return o.doc }

// Digest is the digest of Doc, zero until SetDoc.
func (o *Object) Digest() [16]byte { return o.digest }

// text is whichever form of the object is held.
func (o *Object) text() []byte {
	if o.doc != nil {
		return o.doc
	}
	return o.JSON
}

// The fixed part of an Object and of an entry of its lists and maps, in bytes, as
// the allocator rounds them.
const (
	objectOverhead = 512
	entryOverhead  = 48
)

// Size is about how many bytes of memory the object holds, its decoded metadata
// included.
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

// GetAnnotations reads the annotations from the object's text, on each call.
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

// EvidenceTime is the newest moment of the object that its own metadata proves: a field manager's write, its creation, or the
// request to delete it. A deletionTimestamp lies in the future, so the request was a grace period before it. It is false if the
// metadata says nothing.
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

// AtResourceVersion is a copy with another resource version in its metadata and in
// its text.
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

// Restore makes an object of its canonical text, as SetDoc took it.
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

// restorers are scanners of texts, kept between calls: to make one takes more memory than most objects.
var restorers = sync.Pool{New: func() any { return &scanner{dec: new(jsontext.Decoder)} }}
