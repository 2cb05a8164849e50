package postgres

import (
	"errors"
	"fmt"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/internal/chain"
	"github.com/kuberewind/kuberewind/internal/owner"
	"github.com/kuberewind/kuberewind/patch"
)

// keyframeEvery is the number of versions after which an object is stored whole. So a reader folds at most 63 patches.
// Between 32 and 128 the number hardly changes the size of the record, because most objects have few versions.
const keyframeEvery = 64

// A version is one version of an object, before it is recorded.
type version struct {
	item            *Item
	kind, source    int16
	namespace, name string
	uid, rv         string
	doc             patch.Doc
	digest          [16]byte
	known           *entry // the previous version of the same life, nil for the first
	pending         *draft // the draft of known, nil if it is no longer a draft
}

func (e *encoder) delta(b *Batch, st *Stream, it *Item) error {
	v := version{item: it}
	var typeOK, sourceOK bool
	v.kind, typeOK = delta.TypeNumber(it.Type)
	v.source, sourceOK = it.Source.Number()
	if !typeOK || !sourceOK {
		return fmt.Errorf("unknown type %q or source %q of a delta", it.Type, it.Source)
	}
	if it.Object == nil {
		return e.vanished(b, st, &v)
	}
	if err := v.read(it.Object); err != nil {
		return err
	}
	e.drafts.find(st, &v)
	if st.recorded(&v) || v.source == delta.NumberResync && !v.due(b.after.observed) {
		b.stats.Skipped++
		e.advance(b, st, it)
		return nil
	}
	if v.known != nil && !v.known.isUID(v.uid) {
		// I5: the name has a new UID, so the old life is over, although the server did not report its end.
		if err := e.drafts.endUnseen(b, st, &v); err != nil {
			return err
		}
		v.known, v.pending = nil, nil
	}
	e.begun(b, st, it.Source)
	e.drafts.record(b, st, &v)
	e.advance(b, st, it)
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

// vanished records that an object no longer exists, although the server did not report its end.
func (e *encoder) vanished(b *Batch, st *Stream, v *version) error {
	it := v.item
	if it.Type != delta.Deleted {
		return errors.New("a delta without an object must be Deleted")
	}
	v.namespace, v.name = splitKey(it.Key)
	v.rv = clean(it.RV)
	e.drafts.find(st, v)
	if v.known == nil || (it.UID != "" && !v.known.isUID(clean(string(it.UID)))) {
		b.stats.Skipped++ // I7: its end is already recorded.
	} else {
		e.begun(b, st, it.Source)
		if err := e.drafts.endUnseen(b, st, v); err != nil {
			return err
		}
	}
	e.advance(b, st, it)
	return nil
}

// endUnseen ends the life of v.known with an additional row. The row repeats the digest of the last version.
func (ds *drafts) endUnseen(b *Batch, st *Stream, v *version) error {
	if err := ds.addKeyframe(b, st, v); err != nil {
		return err
	}
	d := ds.add(b, st, v)
	d.row.Kind, d.row.Source = delta.NumberDeleted, delta.NumberInferred
	d.row.ObjectID, d.row.Digest = v.known.id, v.known.digest
	ds.endLife(b, d, v.known.uidText())
	return nil
}

// endLife ends the life of the draft.
func (ds *drafts) endLife(b *Batch, d *draft, uid string) {
	d.ends = true
	b.endings = append(b.endings, ending{End: chain.End{ObjectID: d.row.ObjectID, Seq: d.row.Seq}, stream: d.row.Stream})
	if born := b.life(d.row.ObjectID); born != nil {
		born.ended = true
	}
	d.stream.ended.add(uid, d.rv)
}

// record stores the version, and makes it the known version.
func (ds *drafts) record(b *Batch, st *Stream, v *version) {
	d := ds.add(b, st, v)
	d.row.Digest = v.digest
	next := newEntry(v.uid, v.rv)
	next.digest, next.day = v.digest, dayOf(d.row.Observed)
	if v.known != nil {
		d.row.ObjectID = v.known.id
	} else {
		d.row.ObjectID = d.row.Seq
		b.lives = append(b.lives, life{
			Life:   chain.Life{ObjectID: d.row.Seq, Stream: st.id, Namespace: clean(v.namespace), Name: lifeName(v.name), UID: v.uid},
			owners: owner.UIDs(v.doc),
		})
	}
	next.id = d.row.ObjectID
	d.entry = &next
	if v.kind == delta.NumberDeleted {
		ds.endLife(b, d, v.uid)
	}
}
