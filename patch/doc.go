// Package patch is the codec of the record: JSON texts in one canonical form, RFC 6902 patches between them, and what
// PostgreSQL can hold of them. It works on bytes; only Decode builds Go values of a document.
//
// # What it guarantees
//
//   - Canonical form: equal values, and only they, have equal bytes. White space is gone; members are sorted by the bytes of
//     their keys' text; of members with one key the last is kept, as Kubernetes and jsonb do; strings escape only what must
//     be; numbers are exact, spelt as a plain decimal without needless zeros, and with an exponent only when that would take
//     more than 400 digits. A Doc that went through jsonb and back is the same Doc after Canonical.
//   - Nothing is lost: \u0000, lone surrogates (as \udxxx), bytes that are not UTF-8 (verbatim), numbers of any size, explicit
//     nulls, the empty key, keys with / and ~.
//   - Diff gives a patch that Apply turns into the very bytes of the new Doc (I6 rests on it, and AppendRebasedDiff proves it); with "old" on remove and
//     replace, so that it can be read and undone by itself. Elements of arrays are edited and not replaced whole: those that
//     belong together by text, by identity (name, type, key, uid, manager and the like), by what they have in common or by
//     place are paired, in this order, and moved where they stand elsewhere. No value's edits are longer than replacing it. A patch is canonical itself.
//   - Apply takes any patch of RFC 6902, in any spelling, and gives a Doc or an error; it changes neither argument.
//   - Time: Canonical and Diff are linear in the size of the texts, n·log(n) in the length of an array or object, whatever the
//     texts. Apply reads each text once; an operation costs the length of its path, an insertion or removal moves the members
//     of the one container that it changes, and test and copy write out their value if it was edited before.
//
// # What it rejects, and why
//
//   - Canonical, with the byte offset: what RFC 8259 calls no JSON text, nesting deeper than 10,000 levels (as encoding/json),
//     texts longer than 1 GiB (offsets are 32 bits wide).
//   - Diff and Apply: documents that are not canonical, because a patch against them would fold to something else.
//   - Apply: results deeper than a Doc can be; removal of the whole document, which would leave no JSON text; copy operations
//     that add more than 16 MiB, because each can double a document.
//   - Get, Set, Members and Rewrite trust their Doc. What is none gives a wrong answer, not a panic.
//
// The limits are constants, and there are no knobs. The package starts no goroutine; its functions may be called from many
// at once. A Doc is never changed in place, so results may share memory with arguments; but for the one that AppendRebasedDiff is given to write over.
package patch
