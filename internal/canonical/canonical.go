// Package canonical brings objects into the form in which they are queued and recorded.
package canonical

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/kube"
	"github.com/kuberewind/kuberewind/patch"
)

// Transformer returns a function that brings an object into the form in which it is queued and recorded. That form is
// canonical, and holds nothing that must not be kept (I9). An error keeps the object out of the queue. Redaction may be
// nil.
func Transformer(redaction *redact.Resource) cache.TransformFunc {
	return func(obj any) (any, error) {
		o, ok := obj.(*kube.Object)
		if !ok {
			return nil, fmt.Errorf("a %T is not an object as the API server served it", obj)
		}
		if o.Doc() != nil {
			return o, nil
		}
		doc, err := patch.Canonical(o.JSON)
		if err != nil {
			return nil, fmt.Errorf("object %s/%s at resource version %s: %w", o.Namespace, o.Name, o.ResourceVersion, err)
		}
		if redaction != nil {
			if doc, err = redaction.Apply(doc, o.Namespace, o.Name); err != nil {
				return nil, err
			}
		}
		o.SetDoc(doc)
		return o, nil
	}
}

// Restorer returns a function that applies the present rules of redaction, which may be nil, to a text of the record or
// of the spool. I9: the text may have been written under fewer rules.
func Restorer(redaction *redact.Resource) func(patch.Doc) (patch.Doc, error) {
	if redaction == nil {
		return func(doc patch.Doc) (patch.Doc, error) { return doc, nil }
	}
	return redaction.Reapply
}
