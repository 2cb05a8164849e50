package blame

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/patch"
)

// An Origin is the version that last set a value.
type Origin struct {
	Seq                    int64
	RV                     string
	Type                   delta.Type
	Source                 delta.Source
	ObservedAt, OccurredAt time.Time
	Manager, Subresource   string // set if the version proves them; otherwise Manager is ""
	// Earlier says that this version or an earlier one set the value: this is the first version on record, but not the
	// object's first.
	Earlier bool
	// Latest says that this version, or a version before it that the record missed, set the value.
	Latest bool
}

// A Fold reads one life. The zero value has read nothing.
type Fold struct {
	doc  patch.Doc
	root *node
}

// Doc returns the last version, nil if there is none.
func (f *Fold) Doc() patch.Doc { return f.doc }

// Add adds the next version. It skips a version without a Doc, which could not be folded, and compares the next version
// with the last one that it has. An error says that a patch does not fit the previous version.
func (f *Fold) Add(v *history.Version) error {
	if v.Doc == nil {
		return nil
	}
	o := originOf(v)
	if f.doc == nil {
		o.Earlier, o.Latest = v.Type != delta.Added, false
		f.doc, f.root = v.Doc, build(v.Doc, o)
		return nil
	}
	change := v.Patch
	if change == nil || !bytes.Equal(v.Before, f.doc) {
		o.Latest = o.Latest || !bytes.Equal(v.Before, f.doc)
		var err error
		if change, err = patch.Diff(f.doc, v.Doc); err != nil {
			return fmt.Errorf("compare seq %d with the previous version: %w", v.Seq, err)
		}
	}
	e := edit{origin: o}
	for op := range patch.Operations(change) {
		if err := e.do(f.root, op); err != nil {
			return fmt.Errorf("fold seq %d: %s at /%s: %w", v.Seq, op.Op, strings.Join(op.Path, "/"), err)
		}
	}
	e.end()
	f.rebase(v.Doc, o)
	f.doc = v.Doc
	return nil
}

// rebase sets the resource version: every version has one, but no patch contains it.
func (f *Fold) rebase(doc patch.Doc, o *Origin) {
	const pointer = "/metadata/resourceVersion"
	before, _ := patch.Get(f.doc, pointer)
	after, ok := patch.Get(doc, pointer)
	if n := f.root.find([]string{"metadata", "resourceVersion"}); n != nil && ok && !bytes.Equal(before, after) {
		*n = *build(after, o)
	}
}

func originOf(v *history.Version) *Origin {
	return &Origin{
		Seq: v.Seq, RV: v.RV, Type: v.Type, Source: v.Source, ObservedAt: v.ObservedAt, OccurredAt: v.OccurredAt,
		Manager: v.Manager, Subresource: v.Subresource, Latest: v.Source != delta.SourceWatch,
	}
}
