package postgres

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/kuberewind/kuberewind/patch"
)

// keyframeEvery is the number of versions after which an object is stored whole: the longest chain of patches that a reader
// has to fold is one shorter. Between 32 and 128 it hardly changes the size of the record, since most objects have few versions.
const keyframeEvery = 64

// A version is one version of an object that is about to be recorded.
type version struct {
	item            *Item
	kind, source    int16
	namespace, name string
	uid, rv         string
	doc             patch.Doc
	digest          [16]byte
	known           *entry // the version before it in the same life, nil for the first
}

func (e *encoder) delta(b *Batch, st *Stream, it *Item) error {
	v := version{item: it}
	var typeOK, sourceOK bool
	v.kind, typeOK = typeNumber(it.Type)
	v.source, sourceOK = sourceNumber(it.Source)
	if !typeOK || !sourceOK {
		return fmt.Errorf("unknown type %q or source %q of a delta", it.Type, it.Source)
	}
	if it.Object == nil {
		return e.vanished(b, st, &v)
	}
	if err := v.read(it.Object); err != nil {
		return err
	}
	v.known = st.known.get(v.namespace, v.name)
	if st.recorded(&v) || v.source == sourceResync && !e.due(&v) {
		b.stats.Skipped++
		e.pass(b, st, it.Position)
		return nil
	}
	if v.known != nil && !v.known.isUID(v.uid) {
		// I5: the name has a new UID, so the old life is over, though nothing was served that said so.
		if err := e.endUnseen(b, st, &v); err != nil {
			return err
		}
		v.known = nil
	}
	e.begun(b, st, it.Source)
	e.record(b, st, &v)
	e.pass(b, st, it.Position)
	return nil
}

func (v *version) read(o Object) error {
	v.namespace, v.name = o.GetNamespace(), o.GetName()
	v.uid, v.rv = clean(string(o.GetUID())), clean(o.GetResourceVersion())
	if v.doc = o.Doc(); len(v.doc) == 0 {
		return fmt.Errorf("object %s has no text", joinKey(v.namespace, v.name))
	}
	if d, ok := o.(interface{ Digest() [16]byte }); ok {
		v.digest = d.Digest()
		return nil
	}
	v.digest = patch.Digest(v.doc)
	return nil
}

// vanished records that an object is no longer there, with nothing that the server said about its end.
func (e *encoder) vanished(b *Batch, st *Stream, v *version) error {
	it := v.item
	if it.Type != Deleted {
		return errors.New("a delta without an object that is not Deleted")
	}
	v.namespace, v.name = splitKey(it.Key)
	v.rv = clean(it.RV)
	v.known = st.known.get(v.namespace, v.name)
	if v.known == nil || (it.UID != "" && !v.known.isUID(clean(string(it.UID)))) {
		b.stats.Skipped++ // I7: its end is recorded.
	} else {
		e.begun(b, st, it.Source)
		if err := e.endUnseen(b, st, v); err != nil {
			return err
		}
	}
	e.pass(b, st, it.Position)
	return nil
}

// endUnseen ends the life of v.known with a row of its own, which repeats the digest of the last version.
func (e *encoder) endUnseen(b *Batch, st *Stream, v *version) error {
	if err := e.again(b, st, v); err != nil {
		return err
	}
	r := e.newRow(st, v)
	r.kind, r.source = typeDeleted, sourceInferred
	r.objectID, r.digest = v.known.id, v.known.digest
	e.append(b, st, &r)
	e.endLife(b, st, v, &r, v.known.uidText())
	return nil
}

// endLife ends the life to which the row belongs.
func (e *encoder) endLife(b *Batch, st *Stream, v *version, r *row, uid string) {
	b.endings = append(b.endings, ending{objectID: r.objectID, seq: r.seq})
	if born := b.life(r.objectID); born != nil {
		born.deletedSeq = r.seq
	}
	st.buried.add(uid, v.rv)
	st.known.remove(v.namespace, v.name)
}

// newRow gives the next seq to a row, with what does not depend on the object's text.
func (e *encoder) newRow(st *Stream, v *version) row {
	e.head.seq++
	r := row{
		seq: e.head.seq, observed: e.head.observed, occurred: e.head.observed, stream: st.id,
		kind: v.kind, source: v.source, rv: v.rv, version: clean(v.item.Version),
	}
	if !v.item.Occurred.IsZero() {
		r.occurred = v.item.Occurred.UnixMicro()
	}
	return r
}

// record stores the version, and makes it the known one.
func (e *encoder) record(b *Batch, st *Stream, v *version) {
	r := e.newRow(st, v)
	r.digest = v.digest
	before, change := e.change(b, v, &r)
	manager, subresource := writer(v, before, change)
	r.manager, r.subresource = clean(manager), clean(subresource)
	next := newEntry(v.uid, v.rv)
	next.digest, next.day = v.digest, dayOf(r.observed)
	if v.known != nil {
		r.objectID = v.known.id
	} else {
		r.objectID = r.seq
		b.lives = append(b.lives, life{objectID: r.seq, stream: st.id, namespace: clean(v.namespace), name: lifeName(v.name), uid: v.uid})
	}
	next.id = r.objectID
	v.content(&r, &next, change)
	e.append(b, st, &r)
	if v.kind == typeDeleted {
		e.endLife(b, st, v, &r, v.uid)
		return
	}
	e.packed = s2.Encode(e.packed[:cap(e.packed)], v.doc)
	next.doc = bytes.Clone(e.packed)
	st.known.put(v.namespace, v.name, &next)
}

// writer says who made a version of the one before.
func writer(v *version, before patch.Doc, change []byte) (name, subresource string) {
	if v.source == sourceSchema {
		return "", "" // The server reads the same stored object in another way.
	}
	compared, ok := v.item.Object.(interface {
		ManagerAfter(before patch.Doc, change []byte) (name, subresource string)
	})
	if !ok || change == nil {
		return v.item.Object.Manager()
	}
	return compared.ManagerAfter(before, change)
}

// content decides what the row carries: the patch, the whole object, or both.
func (v *version) content(r *row, next *entry, change []byte) {
	keyframe := v.known == nil || v.kind == typeSync || v.known.since+1 >= keyframeEvery || v.known.unsafe
	// I8: each day's partition can be read by itself.
	keyframe = keyframe || v.known.day != next.day
	if change != nil {
		safe, replaced := patch.SafeForSQL(change)
		if safe[0] == '[' { // and not a text that says that the patch is too large for jsonb
			r.patch = safe
		}
		keyframe = keyframe || replaced || len(change) > len(v.doc)
	}
	if !keyframe && r.patch != nil {
		next.since = v.known.since + 1
		return
	}
	r.object, next.unsafe = patch.SafeForSQL(v.doc)
	if next.unsafe {
		r.exact = v.doc
	}
}

// change gives the version before, with the new resource version in it since the row says that anyway, and the patch that makes of it
// this version. They are nil where there is no version before, or where the patch does not give back what was served.
func (e *encoder) change(b *Batch, v *version, r *row) (before patch.Doc, change []byte) {
	if v.known == nil || v.known.doc == nil {
		return nil, nil
	}
	before, err := v.known.text(e.plain[:cap(e.plain)])
	if err == nil {
		e.plain = before[:0]
		before = rebased(before, v.rv)
		// I6: a patch is stored only if it gives the version that the server served.
		e.diff, err = patch.AppendCheckedDiff(e.diff[:0], before, v.doc)
	}
	if err == nil {
		return before, e.diff
	}
	b.stats.Mismatches++
	if e.hooks.Mismatch != nil {
		e.hooks.Mismatch(Mismatch{Stream: r.stream, Seq: r.seq, Key: joinKey(v.namespace, v.name), Err: err})
	}
	return nil, nil
}

// rebased is withResourceVersion for a text that nobody else holds: it is changed in place where that can be done.
func rebased(doc patch.Doc, rv string) patch.Doc {
	value, ok := patch.Get(doc, resourceVersionPath)
	if !ok || len(value) != len(rv)+2 || value[0] != '"' || !plain(rv) {
		return withResourceVersion(doc, rv)
	}
	copy(value[1:], rv)
	return doc
}

// plain reports whether a text stands for itself between quotes.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

const resourceVersionPath = "/metadata/resourceVersion"

// withResourceVersion gives doc with another resource version, if it has one.
func withResourceVersion(doc patch.Doc, rv string) patch.Doc {
	if rv == "" {
		return doc
	}
	changed, err := patch.Set(doc, resourceVersionPath, patch.Quote([]byte(rv)))
	if err != nil {
		return doc
	}
	return changed
}
