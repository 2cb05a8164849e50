package patch

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
)

// A Doc is one JSON value as canonical text: two Docs hold equal values if and only if their bytes are equal. No code
// changes a Doc in place, so Docs may share memory.
type Doc []byte

var errNotCanonical = errors.New("the text is not in canonical form")

// Canonical returns the canonical form of a JSON text. The error names the byte at which the text is not JSON, is
// nested deeper than 10,000 levels, or is longer than 1 GiB.
func Canonical(text []byte) (Doc, error) {
	return AppendCanonical(nil, text)
}

// AppendCanonical appends the canonical form of a JSON text to dst. After an error dst is unchanged.
func AppendCanonical(dst, text []byte) ([]byte, error) {
	t := tapes.Get().(*tape)
	defer t.release()
	if err := t.parse(text, maxDepth); err != nil {
		return dst, fmt.Errorf("patch: %w", err)
	}
	return t.appendNode(slices.Grow(dst, len(t.span(0))), 0), nil
}

// Digest returns the first 16 bytes of the SHA-256 of a Doc. Equal values have equal digests.
func Digest(doc Doc) [16]byte {
	sum := sha256.Sum256(doc)
	return [16]byte(sum[:16])
}
