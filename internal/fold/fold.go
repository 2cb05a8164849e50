// Package fold makes the versions of an object out of what the record holds of it: keyframes, and patches onto the version before.
//
// The record holds of each delta a patch (RFC 6902), the whole object, or both. A patch is made against the version before with the new
// resource version in it, so it does not hold that version. A whole object that jsonb cannot hold as it was stands in the column exact, too.
// An inferred delete has neither.
//
// It does no I/O and keeps no state. A version may share memory with the version before it.
package fold

import (
	"bytes"
	"errors"

	"github.com/kuberewind/kuberewind/patch"
)

// Why a row does not give a version.
var (
	ErrDigest     = errors.New("it does not fold to the digest on record")
	ErrNoKeyframe = errors.New("no whole version to fold it from is on record")
)

// ResourceVersion is the path of what Rebased sets.
const ResourceVersion = "/metadata/resourceVersion"

// A Row is what the record holds of one version. A column that is NULL is nil.
type Row struct {
	RV                   string // "" is none
	Patch, Object, Exact []byte // JSON
}

// Onto folds the row onto the version before it, nil if that is not known.
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
	return before, nil // an inferred delete: the last version that is known
}

// Checked is Onto, and ErrDigest if the version does not have the digest (I6).
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

// Rebased gives what a patch is made against: the version before, with the row's resource version in it.
func Rebased(doc patch.Doc, rv string) patch.Doc {
	if rv == "" {
		return doc
	}
	changed, err := patch.Set(doc, ResourceVersion, patch.Quote([]byte(rv)))
	if err != nil {
		return doc // it has none
	}
	return changed
}
