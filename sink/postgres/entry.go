package postgres

import (
	"encoding/hex"
	"strconv"

	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/patch"
)

// An entry is the last version of one living object. It never changes: a new version is a new entry, so readers need no
// lock once they hold one. There may be millions; an entry is 96 bytes, plus the compressed text.
type entry struct {
	id     int64     // object_id of the life
	doc    []byte    // canonical text as an s2 block; nil if the text on record could not be folded or redacted
	odd    *oddNames // set if uid or rv do not fit
	rv     uint64
	uid    [16]byte
	digest [16]byte
	day    int32 // UTC day of the last row, since 1970; noDay if no row folds to this text
	since  uint8 // rows since the last keyframe
	unsafe bool  // the text holds what jsonb rejects
	clear  bool  // the present rules cannot redact the text on record, and the text is not kept
}

// oddNames holds a UID that is not a UUID in its usual spelling, or a resource version that is not a number.
type oddNames struct{ uid, rv string }

func newEntry(uid, rv string) entry {
	var e entry
	var uuid, number bool
	e.uid, uuid = packUID(uid)
	e.rv, number = packRV(rv)
	if !uuid || !number {
		e.odd = &oddNames{uid: uid, rv: rv}
	}
	return e
}

func (e *entry) uidText() string {
	if e.odd != nil {
		return e.odd.uid
	}
	return unpackUID(e.uid)
}

func (e *entry) rvText() string {
	if e.odd != nil {
		return e.odd.rv
	}
	return strconv.FormatUint(e.rv, 10)
}

func (e *entry) isUID(uid string) bool {
	if e.odd != nil {
		return e.odd.uid == uid
	}
	packed, ok := packUID(uid)
	return ok && packed == e.uid
}

// rewritten reports whether the record shows another text than the present rules allow: when the sink loaded the
// object, the text had to be redacted again.
func (e *entry) rewritten() bool { return e != nil && (e.clear || e.day == noDay && e.doc != nil) }

// text appends the canonical text to dst.
func (e *entry) text(dst []byte) (patch.Doc, error) {
	return s2.Decode(dst, e.doc)
}

// packUID packs a UUID in lower-case hexadecimal with its four hyphens.
func packUID(uid string) (packed [16]byte, ok bool) {
	if len(uid) != 36 || uid[8] != '-' || uid[13] != '-' || uid[18] != '-' || uid[23] != '-' {
		return packed, false
	}
	n := 0
	for i := 0; i < 36; {
		if uid[i] == '-' {
			i++
			continue
		}
		high, low := hexDigit(uid[i]), hexDigit(uid[i+1])
		if high > 15 || low > 15 {
			return packed, false
		}
		packed[n] = high<<4 | low
		n++
		i += 2
	}
	return packed, true
}

// hexDigit returns the value of a lower-case hexadecimal digit, and 255 for any other byte.
func hexDigit(c byte) byte {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	}
	return 255
}

func unpackUID(packed [16]byte) string {
	var text [36]byte
	hex.Encode(text[:8], packed[:4])
	hex.Encode(text[9:13], packed[4:6])
	hex.Encode(text[14:18], packed[6:8])
	hex.Encode(text[19:23], packed[8:10])
	hex.Encode(text[24:], packed[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}

// packRV packs a resource version that is a decimal number, in the spelling that rvText returns.
func packRV(rv string) (uint64, bool) {
	if rv == "" || (rv[0] == '0' && len(rv) > 1) {
		return 0, false
	}
	for i := range len(rv) {
		if rv[i] < '0' || rv[i] > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseUint(rv, 10, 64)
	return n, err == nil
}
