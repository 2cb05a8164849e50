package chain

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// A Digester computes the digest of one batch. It is SHA-256 over the digest of the previous batch and these records, in this
// order. The previous digest is 32 bytes; for the first batch, see Genesis. Everything in the records can be read from the
// tables again.
//
//	'd' for each delta by seq:          seq, object_id, stream, observed_at, occurred_at, type, source, rv, version, manager,
//	                                    manager_evidence, manager_hint, subresource, digest
//	'l' for each life by object_id,     object_id, stream, namespace, name, uid
//	    that began in the batch:
//	'e' for each life by its end,       object_id, seq of its end
//	    that ended in the batch:
//	'o' for each gap by number,         gap, stream, cause, from_rv, from_at
//	    opened by the batch:
//	'c' for each gap by number,         gap, detail, to_rv, to_at, outcome, appeared, changed, vanished, unchanged
//	    closed by the batch:
//	'x' for the erasure that the batch  erasure, erased_at, erased_by, reason, scope, fingerprint, deltas, objects, documents
//	    is, if it is one:
//	'y' for each delta by seq that it   seq, digest_before, digest_after
//	    changed:
//	'b' once:                           cluster, epoch, batch, first_seq, last_seq, observed_at
//
// The digest in 'd' is the digest with which the delta was written. If erased_deltas names the delta, it is
// digest_before of its oldest row there.
//
// Values are written as follows:
//
//   - Integers of any width are 8 bytes, big-endian.
//   - Times are microseconds since 1970, as integers.
//   - Texts and byte strings are their length as a 4-byte integer, and their bytes.
//   - A value that may be NULL is a byte 0 for NULL, or a byte 1 and the value.
type Digester struct {
	hash   hash.Hash
	record []byte
}

// Genesis returns the digest to which the first batch of a cluster is chained.
func Genesis(clusterUID string) [32]byte {
	return sha256.Sum256([]byte("kuberewind record of cluster " + clusterUID))
}

// New returns a Digester.
func New() *Digester { return &Digester{hash: sha256.New()} }

// Begin starts the digest of a batch with the digest of the previous batch.
func (d *Digester) Begin(before [32]byte) {
	d.hash.Reset()
	d.hash.Write(before[:])
}

// Delta adds a delta of the batch.
func (d *Digester) Delta(r *Delta) {
	d.tag('d')
	d.ints(r.Seq, r.ObjectID, int64(r.Stream), r.Observed, r.Occurred, int64(r.Kind), int64(r.Source))
	d.text(r.RV)
	d.text(r.Version)
	d.nullable(r.Manager)
	d.code(r.Evidence)
	d.nullable(r.Hint)
	d.nullable(r.Subresource)
	d.text(string(r.Digest[:]))
	d.write()
}

// Life adds a life that began in the batch.
func (d *Digester) Life(l *Life) {
	d.tag('l')
	d.ints(l.ObjectID, int64(l.Stream))
	d.text(l.Namespace)
	d.text(l.Name)
	d.text(l.UID)
	d.write()
}

// End adds a life that ended in the batch.
func (d *Digester) End(e *End) {
	d.tag('e')
	d.ints(e.ObjectID, e.Seq)
	d.write()
}

// Opened adds a gap that the batch opened.
func (d *Digester) Opened(g *Gap) {
	d.tag('o')
	d.ints(g.Number, int64(g.Stream))
	d.text(string(g.Cause))
	d.textOrNull(g.FromRV)
	d.intOrNull(g.FromAt)
	d.write()
}

// Closed adds a gap that the batch closed.
func (d *Digester) Closed(g *Gap) {
	d.tag('c')
	d.ints(g.Number)
	d.text(g.Detail)
	d.textOrNull(g.ToRV)
	d.intOrNull(g.ToAt)
	d.text(string(g.Outcome))
	for i := range 4 {
		if g.Counts == nil {
			d.intOrNull(nil)
			continue
		}
		d.intOrNull(&g.Counts[i])
	}
	d.write()
}

// Erasure adds the erasure, if the batch is one.
func (d *Digester) Erasure(x *Erasure) {
	d.tag('x')
	d.ints(x.Number, x.At.UnixMicro())
	d.text(x.By)
	d.text(x.Reason)
	d.text(x.Scope)
	d.text(string(x.Fingerprint))
	d.ints(x.Deltas, x.Objects, x.Documents)
	d.write()
}

// Erased adds a delta that the erasure changed.
func (d *Digester) Erased(e *ErasedDelta) {
	d.tag('y')
	d.ints(e.Seq)
	d.text(string(e.Before[:]))
	d.text(string(e.After[:]))
	d.write()
}

// Sum returns the digest of the batch.
func (d *Digester) Sum(b Batch) (digest [32]byte) {
	d.tag('b')
	d.ints(int64(b.Cluster), b.Epoch, b.Number, b.FirstSeq, b.LastSeq, b.Observed)
	d.write()
	d.hash.Sum(digest[:0])
	return digest
}

func (d *Digester) tag(t byte) { d.record = append(d.record[:0], t) }

func (d *Digester) write() { d.hash.Write(d.record) }

func (d *Digester) ints(numbers ...int64) {
	for _, n := range numbers {
		d.record = binary.BigEndian.AppendUint64(d.record, uint64(n))
	}
}

func (d *Digester) text(s string) {
	d.record = binary.BigEndian.AppendUint32(d.record, uint32(len(s)))
	d.record = append(d.record, s...)
}

// nullable writes a text, or NULL if it is empty.
func (d *Digester) nullable(s string) {
	if s == "" {
		d.textOrNull(nil)
		return
	}
	d.textOrNull(&s)
}

// code writes an integer, or NULL for 0.
func (d *Digester) code(n int16) {
	if n == 0 {
		d.intOrNull(nil)
		return
	}
	wide := int64(n)
	d.intOrNull(&wide)
}

func (d *Digester) textOrNull(s *string) {
	if s == nil {
		d.record = append(d.record, 0)
		return
	}
	d.record = append(d.record, 1)
	d.text(*s)
}

func (d *Digester) intOrNull(n *int64) {
	if n == nil {
		d.record = append(d.record, 0)
		return
	}
	d.record = append(d.record, 1)
	d.ints(*n)
}
