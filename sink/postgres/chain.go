package postgres

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
)

// A chain computes the digest of one batch. It is SHA-256 over the digest of the batch before and these records, in this
// order. The digest before is 32 bytes; for the first batch, see genesis. Everything in the records can be read from the
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
// The digest in 'd' is the one with which the delta was written. If erased_deltas names the delta, it is digest_before of its
// oldest row there.
//
// Values are written as follows:
//
//   - Integers of any width are 8 bytes, big-endian.
//   - Times are microseconds since 1970, as integers.
//   - Texts and byte strings are their length as a 4-byte integer, and their bytes.
//   - What may be NULL is a byte 0 for NULL, or a byte 1 and the value.
type chain struct {
	hash   hash.Hash
	record []byte
}

// genesis is what the first batch of a cluster is chained to.
func genesis(clusterUID string) [32]byte {
	return sha256.Sum256([]byte("kuberewind record of cluster " + clusterUID))
}

func newChain() *chain { return &chain{hash: sha256.New()} }

// begin starts the digest of a batch.
func (c *chain) begin(before [32]byte) {
	c.hash.Reset()
	c.hash.Write(before[:])
}

func (c *chain) delta(r *row) {
	c.tag('d')
	c.ints(r.seq, r.objectID, int64(r.stream), r.observed, r.occurred, int64(r.kind), int64(r.source))
	c.text(r.rv)
	c.text(r.version)
	c.nullable(r.manager)
	c.code(r.evidence)
	c.nullable(r.hint)
	c.nullable(r.subresource)
	c.text(string(r.digest[:]))
	c.write()
}

func (c *chain) life(l *life) {
	c.tag('l')
	c.ints(l.objectID, int64(l.stream))
	c.text(l.namespace)
	c.text(l.name)
	c.text(l.uid)
	c.write()
}

func (c *chain) ending(e ending) {
	c.tag('e')
	c.ints(e.objectID, e.seq)
	c.write()
}

func (c *chain) opening(g *gap) {
	c.tag('o')
	c.ints(g.number, int64(g.stream))
	c.text(string(g.cause))
	c.textOrNull(g.fromRV)
	c.intOrNull(g.fromAt)
	c.write()
}

func (c *chain) closing(g *gap) {
	c.tag('c')
	c.ints(g.number)
	c.text(g.detail)
	c.textOrNull(g.toRV)
	c.intOrNull(g.toAt)
	c.text(string(g.outcome))
	for i := range 4 {
		if g.counts == nil {
			c.intOrNull(nil)
			continue
		}
		c.intOrNull(&g.counts[i])
	}
	c.write()
}

func (c *chain) erasure(x *Erasure) {
	c.tag('x')
	c.ints(x.Number, x.At.UnixMicro())
	c.text(x.By)
	c.text(x.Reason)
	c.text(x.Scope)
	c.text(string(x.Fingerprint))
	c.ints(x.Deltas, x.Objects, x.Documents)
	c.write()
}

func (c *chain) erased(d *erasedDelta) {
	c.tag('y')
	c.ints(d.seq)
	c.text(string(d.before[:]))
	c.text(string(d.after[:]))
	c.write()
}

// end gives the digest of the batch.
func (c *chain) end(cluster int32, epoch, batch, firstSeq, lastSeq, observed int64) (digest [32]byte) {
	c.tag('b')
	c.ints(int64(cluster), epoch, batch, firstSeq, lastSeq, observed)
	c.write()
	c.hash.Sum(digest[:0])
	return digest
}

func (c *chain) tag(t byte) { c.record = append(c.record[:0], t) }

func (c *chain) write() { c.hash.Write(c.record) }

func (c *chain) ints(numbers ...int64) {
	for _, n := range numbers {
		c.record = binary.BigEndian.AppendUint64(c.record, uint64(n))
	}
}

func (c *chain) text(s string) {
	c.record = binary.BigEndian.AppendUint32(c.record, uint32(len(s)))
	c.record = append(c.record, s...)
}

// nullable is a text that is NULL when empty.
func (c *chain) nullable(s string) {
	if s == "" {
		c.textOrNull(nil)
		return
	}
	c.textOrNull(&s)
}

// code is an integer that is NULL when 0.
func (c *chain) code(n int16) {
	if n == 0 {
		c.intOrNull(nil)
		return
	}
	wide := int64(n)
	c.intOrNull(&wide)
}

func (c *chain) textOrNull(s *string) {
	if s == nil {
		c.record = append(c.record, 0)
		return
	}
	c.record = append(c.record, 1)
	c.text(*s)
}

func (c *chain) intOrNull(n *int64) {
	if n == nil {
		c.record = append(c.record, 0)
		return
	}
	c.record = append(c.record, 1)
	c.ints(*n)
}
