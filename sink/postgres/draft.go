package postgres

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/kuberewind/kuberewind/evidence"
	"github.com/kuberewind/kuberewind/internal/chain"
)

// A draft is a row that has its seq, but not yet what it says of the object's text. Giving seqs and moving the known state
// have to be done in order. Comparing texts is most of the work, and is done object by object, on all processors.
type draft struct {
	version
	stream *Stream
	row    row
	entry  *entry // what is known of the object from now on; nil for a row that ends a life and shows no version
	next   *draft // of the version after it in the same life, if that is in the batch, too
	ends   bool   // the life
	inGap  bool   // versions before it may be missing

	mismatched bool // there is no patch, though there is a version before
	mismatch   error
}

// An objectKey is where a stream has an object.
type objectKey struct {
	stream          int32
	namespace, name string
}

func (d *draft) key() objectKey { return objectKey{d.stream.id, d.namespace, d.name} }

// find looks for the version before v.
func (e *encoder) find(st *Stream, v *version) {
	d := e.latest[objectKey{st.id, v.namespace, v.name}]
	switch {
	case d == nil:
		v.known, v.pending = st.known.get(v.namespace, v.name), nil
	case d.ends:
		v.known, v.pending = nil, nil
	default:
		v.known, v.pending = d.entry, d
	}
}

// draft gives the next seq to a row, with what does not depend on the object's text.
func (e *encoder) draft(b *Batch, st *Stream, v *version) *draft {
	e.head.seq++
	d := &draft{version: *v, stream: st, inGap: st.work.gap != nil, row: row{Delta: chain.Delta{
		Evidence: int16(evidence.None), Seq: e.head.seq, Observed: e.head.observed, Occurred: e.head.observed, Stream: st.id,
		Kind: v.kind, Source: v.source, RV: v.rv, Version: clean(v.item.Version),
	}}}
	if !v.item.Occurred.IsZero() {
		d.row.Occurred = v.item.Occurred.UnixMicro()
	}
	if v.pending != nil {
		v.pending.next = d
	} else {
		e.lives = append(e.lives, d)
	}
	e.drafts = append(e.drafts, d)
	e.latest[d.key()] = d
	st.work.lastSeq = d.row.Seq
	b.touch(st)
	return d
}

// settle completes the drafts, and adds their rows to the batch, by seq.
func (e *encoder) settle(b *Batch) {
	e.compare()
	for _, d := range e.drafts {
		e.append(b, d)
	}
	clear(e.drafts)
	clear(e.lives)
	clear(e.latest)
	e.drafts, e.lives = e.drafts[:0], e.lives[:0]
	for _, c := range e.comparers {
		c.forget()
	}
}

const (
	// livesEach is how many lives are worth a goroutine: half a millisecond of work.
	livesEach = 16
	// maxComparers is more than the one goroutine that adds their rows to the batch can keep up with.
	maxComparers = 8
)

// compare completes the drafts, those of one life in order, and returns when all are.
func (e *encoder) compare() {
	var taken atomic.Int64
	work := func(c *comparer) {
		for {
			i := int(taken.Add(1)) - 1
			if i >= len(e.lives) {
				return
			}
			for d := e.lives[i]; d != nil; d = d.next {
				c.complete(d)
			}
		}
	}
	count := max(1, min(runtime.GOMAXPROCS(0), maxComparers, len(e.lives)/livesEach))
	for len(e.comparers) < count {
		e.comparers = append(e.comparers, new(comparer))
	}
	var others sync.WaitGroup
	for _, c := range e.comparers[1:count] {
		others.Go(func() { work(c) })
	}
	work(e.comparers[0])
	others.Wait()
}

// append adds the row of a draft that is complete to the batch, and makes its version the known one.
func (e *encoder) append(b *Batch, d *draft) {
	if d.mismatched {
		b.stats.Mismatches++
		if e.hooks.Mismatch != nil {
			e.hooks.Mismatch(Mismatch{Stream: d.row.Stream, Seq: d.row.Seq, Key: joinKey(d.namespace, d.name), Err: d.mismatch})
		}
	}
	b.stats.count(&d.row)
	b.bound(&d.row, &e.lastDay)
	e.chain.Delta(&d.row.Delta)
	d.row.copyTo(&b.deltas, e.cluster)
	if d.stream.known.countRewritten() > 0 {
		e.rewrote.Store(b.number) // before the count is lowered
	}
	switch {
	case d.ends:
		d.stream.known.remove(d.namespace, d.name)
	case d.next == nil:
		d.stream.known.put(d.namespace, d.name, d.entry)
	}
}
