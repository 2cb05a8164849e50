package history

import (
	"bytes"

	"github.com/kuberewind/kuberewind/patch"
)

const resourceVersionPath = "/metadata/resourceVersion"

// Step folds one row onto the version before it, which is nil if it is not known, and compares the result with the digest (I6).
func Step(before patch.Doc, rv string, change, object, exact, digest []byte) (patch.Doc, error) {
	doc, err := fold(before, rv, change, object, exact)
	if err != nil {
		return nil, err
	}
	if sum := patch.Digest(doc); !bytes.Equal(sum[:], digest) {
		return nil, ErrDigest
	}
	return doc, nil
}

func fold(before patch.Doc, rv string, change, object, exact []byte) (patch.Doc, error) {
	switch {
	case exact != nil:
		return patch.Canonical(exact)
	case object != nil:
		return patch.Canonical(object)
	case before == nil:
		return nil, ErrNoKeyframe
	case change != nil:
		return patch.Apply(Rebased(before, rv), change)
	}
	return before, nil // an inferred delete: the last version that is known
}

// Rebased gives what a patch is made against: the version before, with the row's resource version in it.
func Rebased(doc patch.Doc, rv string) patch.Doc {
	if rv == "" {
		return doc
	}
	changed, err := patch.Set(doc, resourceVersionPath, patch.Quote([]byte(rv)))
	if err != nil {
		return doc // it has none
	}
	return changed
}
