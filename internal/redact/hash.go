package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/kuberewind/kuberewind/patch"
)

// A hash is hashPrefix and 32 hexadecimal digits: 12 bytes of an HMAC, and a mark of 4 bytes. 96 bits are enough to distinguish versions of
// one value.
const (
	hashPrefix = "hmac-sha256:"
	sumBytes   = 12
	markBytes  = 4
)

// hash returns the hash that replaces a value at a place.
func (k Key) hash(value patch.Doc, place ...string) patch.Doc {
	mac := hmac.New(sha256.New, k.bytes[:])
	for _, part := range place {
		mac.Write([]byte(part))
		mac.Write([]byte{0})
	}
	mac.Write(value)
	sum := mac.Sum(nil)[:sumBytes]
	return patch.Quote([]byte(hashPrefix + hex.EncodeToString(append(sum, k.mark(sum)...))))
}

// mark returns the mark of a hash. Only the key can make it, so it proves that a text is a hash.
func (k Key) mark(sum []byte) []byte { return k.Sum("hash", sum)[:markBytes] }

// made reports whether a value is a hash that was made with the key.
func (k Key) made(value patch.Doc) bool {
	digits, ok := bytes.CutPrefix(value, []byte(`"`+hashPrefix))
	if !ok || len(digits) != hex.EncodedLen(sumBytes+markBytes)+1 {
		return false
	}
	raw := make([]byte, sumBytes+markBytes)
	if _, err := hex.Decode(raw, digits[:len(digits)-1]); err != nil {
		return false
	}
	return hmac.Equal(raw[sumBytes:], k.mark(raw[:sumBytes]))
}
