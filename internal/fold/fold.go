// Package fold computes the versions of an object from the rows of the record: keyframes, and patches onto the previous version.
//
// For each delta, the record holds a patch (RFC 6902), the whole object, or both. The patch expects the previous version with the
// new resource version in it, so the patch does not contain that resource version. If jsonb cannot hold the whole object exactly,
// the column exact holds its text, too. An inferred delete has neither.
//
// The package does no I/O and keeps no state. A version may share memory with the previous version.
package fold

import (
	"bytes"
	"errors"

	"github.com/kuberewind/kuberewind/patch"
)

// These errors say why a row has no version.
var (
	ErrDigest     = errors.New("it does not fold to the digest on record")
	ErrNoKeyframe = errors.New("no whole version to fold it from is on record")
)

// ResourceVersion is the path that Rebased sets.
const ResourceVersion = "/metadata/resourceVersion"

// A Row holds the columns of one version. NULL is nil.
type Row struct {
	RV                   string // "" is none
	Patch, Object, Exact []byte // JSON
}

// Onto folds the row onto the previous version, nil if that is not known.
func (r Row) Onto(before patch.Doc) (patch.Doc, error) {
	switch {
	case r.Exact != nil:
		return patch.Canonical(r.Exact)
	case r.Object != nil:
		return patch.Canonical(r.Object)
	case before == nil:
		return nil, ErrNoKeyframe
	case r.Patch != nil:
		return patch.Apply(Rebased(before, r.RV), r.Patch)
	}
	return before, nil // an inferred delete: the last known version
}

// Checked calls Onto. It returns ErrDigest if the version does not have the digest (I6).
func (r Row) Checked(before patch.Doc, digest []byte) (patch.Doc, error) {
	doc, err := r.Onto(before)
	if err != nil {
		return nil, err
	}
	if sum := patch.Digest(doc); !bytes.Equal(sum[:], digest) {
		return nil, ErrDigest
	}
	return doc, nil
}

// Rebased returns the base of a patch: the previous version with the row's resource version.
func Rebased(doc patch.Doc, rv string) patch.Doc {
	if rv == "" {
		return doc
	}
	changed, err := patch.Set(doc, ResourceVersion, patch.Quote([]byte(rv)))
	if err != nil {
		return doc // the object has no resource version
	}
	return changed
}
