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

// drafts numbers the rows of a batch, keeps those that are not settled, and adds them to the batch in the order of seq.
type drafts struct {
	cluster  int32
	chain    *chain.Digester
	mismatch func(Mismatch) // may be nil
	lastDay  int32          // newest day that has a row in days
	rewrote  atomic.Int64   // the last batch of a stream with objects that were redacted anew

	all, lives []*draft // by seq; the first of each life
	latest     map[objectKey]*draft
	comparers  []*comparer
}

// find looks for the version before v.
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

// add gives the next seq to a row, with what does not depend on the object's text.
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

// settle completes the drafts, and adds their rows to the batch, by seq.
func (ds *drafts) settle(b *Batch) {
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
	// maxComparers is more than the one goroutine that adds their rows to the batch can keep up with.
	maxComparers = 8
)

// compare completes the drafts, those of one life in order, and returns when all are.
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

// append adds the row of a draft that is complete to the batch, and makes its version the known one.
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
		ds.rewrote.Store(b.after.batch) // before the count is lowered
	}
	switch {
	case d.ends:
		d.stream.known.remove(d.namespace, d.name)
	case d.next == nil:
		d.stream.known.put(d.namespace, d.name, d.entry)
	}
}
