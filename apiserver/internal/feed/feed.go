package feed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/kuberewind/kuberewind/history"
)

// A Record is the source of a Feed.
type Record struct {
	Deltas  Deltas
	Commits Commits
}

// Deltas returns versions in the order of the record. *history.Record implements it.
type Deltas interface {
	Versions(ctx context.Context, q history.Query) iter.Seq2[history.Version, error]
}

// Commits returns the commits and the ends of gaps between deltas. history.Commits implements it.
type Commits interface {
	BatchAt(ctx context.Context, seq int64) (int64, error)
	Relists(ctx context.Context, after, upTo int64) ([]history.Relist, error)
}

// The errors with which a Reader ends.
var (
	ErrClosed   = errors.New("the feed is closed")
	ErrBackward = errors.New("the clock went back")
	ErrBehind   = errors.New("the reader is further behind than the deltas that the feed keeps")
)

// Options of a Feed.
type Options struct {
	Bytes int64 // bound of the kept deltas; 0 means 16 MiB
}

const defaultBytes = 16 << 20

// An Event is one delta, or the end of a gap.
type Event struct {
	history.Version
	Err    error           // set if the delta cannot be folded
	Relist *history.Relist // set for the end of a gap that a list closed; then there is no delta
	size   int64

	mu   sync.Mutex // protects what follows
	memo map[any]any
}

// Memo calls fresh once for all Readers that use the same key, and returns its result to each. The result should be no
// larger than the Version's Doc, whose size the Feed counts twice.
func (e *Event) Memo(key any, fresh func() any) any {
	e.mu.Lock()
	defer e.mu.Unlock()
	made, ok := e.memo[key]
	if !ok {
		made = fresh()
		if e.memo == nil {
			e.memo = map[any]any{}
		}
		e.memo[key] = made
	}
	return made
}

// A Feed is a seq that moves, and the deltas before it.
type Feed struct {
	record Record

	moving sync.Mutex // held while the Feed moves

	mu      sync.Mutex // protects what follows
	seq     int64
	batch   int64 // last commit that belongs to seq; -1 if it is unknown
	backlog backlog
	readers int
	jumps   int // moves without events: SeekTo, or an Advance that is too large
	backs   int // the jumps that went back
	closed  bool
	changed chan struct{} // closed and replaced when the Feed has moved
}

// New makes a Feed at seq 0. SeekTo moves it to its first seq.
func New(record Record, o Options) *Feed {
	if o.Bytes == 0 {
		o.Bytes = defaultBytes
	}
	return &Feed{record: record, batch: -1, backlog: backlog{most: o.Bytes}, changed: make(chan struct{})}
}

// Seq returns the seq up to which the Feed delivers deltas.
func (f *Feed) Seq() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

// Changed returns a channel that is closed when the Feed moves or ends. Call it before Seq, and before a Reader reads.
func (f *Feed) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Close ends all Readers.
func (f *Feed) Close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.wake()
	}
}

// SeekTo jumps to a seq. After a jump forward, Readers catch up from the record, at the pace of their callers. A jump
// backward ends them. If the Feed also passes an end of a gap between the delta and the next one, ends is the last commit
// that ended one; else 0.
func (f *Feed) SeekTo(to, ends int64) {
	f.moving.Lock()
	defer f.moving.Unlock()
	f.jump(to, ends)
}

func (f *Feed) jump(to, ends int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if to == f.seq && ends <= max(f.batch, 0) {
		return
	}
	if to < f.seq {
		f.backs++
	}
	f.jumps++
	if ends == 0 {
		ends = -1 // It is looked up when a Reader needs it.
	}
	f.begin(to, ends)
	f.wake()
}

// begin makes the Feed keep the deltas after a seq. mu is held.
func (f *Feed) begin(seq, batch int64) {
	f.backlog.begin(seq, batch)
	f.seq, f.batch = seq, batch
}

// wake wakes all callers that wait on Changed. mu is held.
func (f *Feed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Advance moves the Feed to a later seq. It may be the same seq if the end of a gap has come; SeekTo explains ends. It
// reads the deltas in between once, for all Readers. If they are larger than half of the kept bytes, each Reader reads them
// by itself, as after SeekTo. After an error, the Feed has not moved.
func (f *Feed) Advance(ctx context.Context, to, ends int64) error {
	f.moving.Lock()
	defer f.moving.Unlock()
	seq, batch, err := f.place(ctx)
	if err != nil {
		return err
	}
	if to < seq {
		return fmt.Errorf("advance from seq %d to %d: that is backward", seq, to)
	}
	next := ends
	if ends == 0 {
		next, err = f.record.Commits.BatchAt(ctx, to)
	}
	if err != nil || to == seq && next <= batch {
		return err
	}
	if f.skip(to, next) {
		return nil
	}
	events, fits, err := f.read(ctx, seq, to, batch, next)
	if err != nil {
		return err
	}
	if !fits {
		f.jump(to, ends)
		return nil
	}
	f.append(events, to, next)
	return nil
}

// skip moves the Feed without reading deltas if it has no Reader.
func (f *Feed) skip(to, batch int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.readers > 0 {
		return false
	}
	f.begin(to, batch)
	f.wake()
	return true
}

// place returns the Feed's seq, and the last commit that belongs to it.
func (f *Feed) place(ctx context.Context) (seq, batch int64, err error) {
	for {
		f.mu.Lock()
		seq, batch = f.seq, f.batch
		f.mu.Unlock()
		if batch >= 0 {
			return seq, batch, nil
		}
		if batch, err = f.record.Commits.BatchAt(ctx, seq); err != nil {
			return 0, 0, err
		}
		f.mu.Lock()
		same := f.seq == seq
		if same && f.batch < 0 {
			f.batch = batch
		}
		f.mu.Unlock()
		if same {
			return seq, batch, nil
		}
	}
}

// read returns the deltas after seq, up to to. fits is false if they are too large.
func (f *Feed) read(ctx context.Context, seq, to, batch, next int64) (events []*Event, fits bool, err error) {
	relists, err := f.record.Commits.Relists(ctx, batch, next)
	if err != nil {
		return nil, false, err
	}
	bytes := int64(0)
	for e, err := range between(ctx, f.record.Deltas, history.Query{FromSeq: seq + 1, ToSeq: to}, relists) {
		if err != nil {
			return nil, false, err
		}
		events = append(events, e)
		if bytes += e.size; bytes > f.backlog.most/2 {
			return nil, false, nil
		}
	}
	return events, true, nil
}

// between returns deltas of the record, with the ends of gaps at their places.
func between(ctx context.Context, deltas Deltas, q history.Query, relists []history.Relist) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		ends := func(before int64) bool {
			for ; len(relists) > 0 && relists[0].Seq < before; relists = relists[1:] {
				if !yield(&Event{Relist: &relists[0], size: eventBytes}, nil) {
					return false
				}
			}
			return true
		}
		if q.FromSeq <= q.ToSeq {
			for v, err := range deltas.Versions(ctx, q) {
				var damaged *history.DamagedError
				if err != nil && !errors.As(err, &damaged) {
					yield(nil, err)
					return
				}
				if !ends(v.Seq) || !yield(newEvent(v, err), nil) {
					return
				}
			}
		}
		ends(q.ToSeq + 1)
	}
}

// eventBytes is the memory of an Event without its texts.
const eventBytes = 512

// newEvent drops the parts that no watch needs.
func newEvent(v history.Version, err error) *Event {
	v.Patch, v.Object = nil, nil
	return &Event{Version: v, Err: err, size: int64(2*len(v.Doc)+len(v.Before)) + eventBytes}
}

// place returns the seq up to which all deltas have been delivered with this Event, and the commit up to which the ends of
// gaps have.
func (e *Event) place(batch int64) (seq, ends int64) {
	if e.Relist != nil {
		return e.Relist.Seq, e.Relist.Batch
	}
	return e.Seq, batch
}

// append adds the events that Advance has read.
func (f *Feed) append(events []*Event, to, batch int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backlog.append(events)
	f.seq, f.batch = to, batch
	f.wake()
}
