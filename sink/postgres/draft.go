package postgres

import (
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/kuberewind/kuberewind/evidence"
	"github.com/kuberewind/kuberewind/internal/chain"
)

// A draft is a row that has its seq, but not yet the part that depends on the object's text. The encoder gives seqs and
// moves the known state in order. Comparing texts is most of the work, and runs object by object, on all processors.
type draft struct {
	version
	stream *Stream
	row    row
	entry  *entry // the object's known state from now on; nil if the row ends a life and shows no version
	next   *draft // the next version of the same life, if this batch has it
	ends   bool   // it ends the life
	inGap  bool   // earlier versions may be missing

	mismatched bool // there is a previous version, but no patch
	mismatch   error
}

// An objectKey is the place of an object in a stream.
type objectKey struct {
	stream          int32
	namespace, name string
}

func (d *draft) key() objectKey { return objectKey{d.stream.id, d.namespace, d.name} }

// drafts numbers the rows of a batch and keeps the unfinished rows. It adds them to the batch in the order of seq.
type drafts struct {
	cluster  int32
	chain    *chain.Digester
	mismatch func(Mismatch) // may be nil
	lastDay  int32          // newest day that has a row in days
	rewrote  atomic.Int64   // the last batch of a stream with objects that were redacted again

	all, lives []*draft // all, by seq; and the first of each life
	latest     map[objectKey]*draft
	comparers  []*comparer
}

// find looks up the previous version of v.
func (ds *drafts) find(st *Stream, v *version) {
	d := ds.latest[objectKey{st.id, v.namespace, v.name}]
	switch {
	case d == nil:
		v.known, v.pending = st.known.get(v.namespace, v.name), nil
	case d.ends:
		v.known, v.pending = nil, nil
	default:
		v.known, v.pending = d.entry, d
	}
}

// add gives the next seq to a row, and sets the fields that do not depend on the object's text.
func (ds *drafts) add(b *Batch, st *Stream, v *version) *draft {
	b.after.seq++
	d := &draft{version: *v, stream: st, inGap: st.work.gap != nil, row: row{Delta: chain.Delta{
		Evidence: int16(evidence.None), Seq: b.after.seq, Observed: b.after.observed, Occurred: b.after.observed, Stream: st.id,
		Kind: v.kind, Source: v.source, RV: v.rv, Version: clean(v.item.Version),
	}}}
	if !v.item.Occurred.IsZero() {
		d.row.Occurred = v.item.Occurred.UnixMicro()
	}
	if v.pending != nil {
		v.pending.next = d
	} else {
		ds.lives = append(ds.lives, d)
	}
	ds.all = append(ds.all, d)
	ds.latest[d.key()] = d
	st.work.lastSeq = d.row.Seq
	b.touch(st)
	return d
}

// finish completes the drafts, and adds their rows to the batch, by seq.
func (ds *drafts) finish(b *Batch) {
	ds.compare()
	for _, d := range ds.all {
		ds.append(b, d)
	}
	clear(ds.all)
	clear(ds.lives)
	clear(ds.latest)
	ds.all, ds.lives = ds.all[:0], ds.lives[:0]
	for _, c := range ds.comparers {
		c.forget()
	}
}

const (
	// livesEach is how many lives are worth a goroutine: half a millisecond of work.
	livesEach = 16
	// maxComparers goroutines complete drafts faster than one goroutine can add their rows to the batch.
	maxComparers = 8
)

// compare completes the drafts, in order within a life. It returns when all are complete.
func (ds *drafts) compare() {
	var taken atomic.Int64
	work := func(c *comparer) {
		for {
			i := int(taken.Add(1)) - 1
			if i >= len(ds.lives) {
				return
			}
			for d := ds.lives[i]; d != nil; d = d.next {
				c.complete(d)
			}
		}
	}
	count := max(1, min(runtime.GOMAXPROCS(0), maxComparers, len(ds.lives)/livesEach))
	for len(ds.comparers) < count {
		ds.comparers = append(ds.comparers, new(comparer))
	}
	var others sync.WaitGroup
	for _, c := range ds.comparers[1:count] {
		others.Go(func() { work(c) })
	}
	work(ds.comparers[0])
	others.Wait()
}

// append adds the row of a complete draft to the batch, and makes its version the known one.
func (ds *drafts) append(b *Batch, d *draft) {
	if d.mismatched {
		b.stats.Mismatches++
		if ds.mismatch != nil {
			ds.mismatch(Mismatch{Stream: d.row.Stream, Seq: d.row.Seq, Key: joinKey(d.namespace, d.name), Err: d.mismatch})
		}
	}
	b.stats.count(&d.row)
	b.bound(&d.row, &ds.lastDay)
	ds.chain.Delta(&d.row.Delta)
	d.row.copyTo(&b.copies.deltas, ds.cluster)
	if d.stream.known.countRewritten() > 0 {
		ds.rewrote.Store(b.after.batch) // before the count decreases
	}
	switch {
	case d.ends:
		d.stream.known.remove(d.namespace, d.name)
	case d.next == nil:
		d.stream.known.put(d.namespace, d.name, d.entry)
	}
}
