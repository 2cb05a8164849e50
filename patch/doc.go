// Package patch is the codec of the record. It turns JSON texts into one canonical form, makes and applies RFC 6902
// patches between them, and makes texts fit for PostgreSQL. It works on bytes; only Decode builds Go values of a
// document.
//
// # What it guarantees
//
//   - Canonical form: two values are equal if and only if their bytes are equal. There is no white space. Members are
//     sorted by the bytes of their keys' text. If members share a key, the last one is kept, as in Kubernetes and
//     jsonb. Strings have only the necessary escapes.
//   - Numbers are exact. They are plain decimals without needless zeros, and have an exponent only if they would take
//     more than 400 digits. A Doc that went through jsonb and back is the same Doc after Canonical.
//   - Nothing is lost. Canonical keeps \u0000, lone surrogates (as \udxxx), bytes that are not UTF-8 (verbatim), and
//     numbers of any size. It also keeps explicit nulls, the empty key, and keys with / and ~.
//   - Diff returns a patch that Apply turns into exactly the bytes of the new Doc. I6 rests on it, and
//     AppendRebasedDiff proves it. The patch has "old" on remove and replace, so that it can be read and undone without
//     the document. It is canonical itself.
//   - Diff edits the elements of arrays and does not replace whole arrays. It pairs elements by text, by identity, by
//     common parts, and by place, in this order. (Identity is name, type, key, uid, manager and the like.) It moves a
//     pair with another place. The edits of a value are never longer than replacing it.
//   - Apply accepts any patch of RFC 6902, in any spelling, and returns a Doc or an error. It changes neither argument.
//   - Canonical and Diff take time linear in the size of any texts, and n·log(n) in the length of an array or object.
//   - Apply reads each text once. An operation costs the length of its path. An insertion or removal moves the members
//     of the one container that it changes. The operations test and copy write out their value if it was edited before.
//
// # What it rejects, and why
//
//   - Canonical rejects text that is not JSON by RFC 8259, and names the byte offset. It also rejects more than 10,000
//     nested levels (as encoding/json), and texts longer than 1 GiB (offsets are 32 bits wide).
//   - Diff and Apply reject documents that are not canonical, because a patch against them would fold to something
//     else.
//   - Apply rejects results deeper than a Doc can be, and the removal of the whole document, because the result would
//     be no JSON text. It also rejects copy operations that add more than 16 MiB, because each can double a document.
//   - Get, Set, Members and Rewrite trust their Doc. If it is not a Doc, they return a wrong answer but do not panic.
//
// The limits are constants, and there are no knobs. The package starts no goroutine; its functions may be called
// concurrently. A Doc is never changed in place, so results may share memory with arguments. The only exception is the
// document that AppendRebasedDiff overwrites.
package patch
