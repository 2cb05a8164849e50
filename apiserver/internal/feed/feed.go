package feed

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"github.com/kuberewind/kuberewind/history"
)

// A Record is what a Feed reads.
type Record struct {
	Deltas  Deltas
	Commits Commits
}

// Deltas give versions in the order of the record. *history.Record is one.
type Deltas interface {
	Versions(ctx context.Context, q history.Query) iter.Seq2[history.Version, error]
}

// Commits say what lies between deltas. history.Commits are these.
type Commits interface {
	BatchAt(ctx context.Context, seq int64) (int64, error)
	Relists(ctx context.Context, after, upTo int64) ([]history.Relist, error)
}

// Why a Reader ends.
var (
	ErrClosed   = errors.New("the feed is closed")
	ErrBackward = errors.New("the clock went back")
	ErrBehind   = errors.New("more deltas came than are kept for those who are behind")
)

// Options of a Feed.
type Options struct {
	Bytes int64 // of deltas that are kept; 0 means 16 MiB
}

const defaultBytes = 16 << 20

// An Event is one delta, or the end of a gap.
type Event struct {
	history.Version
	Err    error           // the delta cannot be folded
	Relist *history.Relist // the end of a gap that a list closed, and no delta
	size   int64

	mu   sync.Mutex // protects what follows
	memo map[any]any
}

// Memo makes something of the Event, once for all Readers who ask with the same key. It should be no larger than the Version's Doc: the Feed
// counts that twice.
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
	batch   int64 // last commit that belongs to seq; -1 if it is not known yet
	backlog backlog
	readers int
	jumps   int // calls of SeekTo
	backs   int // those that went back
	closed  bool
	changed chan struct{} // closed and replaced when the Feed has moved
}

// New makes a Feed at seq 0. SeekTo brings it to where it begins.
func New(record Record, o Options) *Feed {
	if o.Bytes == 0 {
		o.Bytes = defaultBytes
	}
	return &Feed{record: record, batch: -1, backlog: backlog{most: o.Bytes}, changed: make(chan struct{})}
}

// Seq is up to where the Feed gives deltas.
func (f *Feed) Seq() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seq
}

// Changed is closed when the Feed moves or ends. Ask for it before Seq, or before a Reader is read.
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

// SeekTo jumps. Forward, Readers catch up from the record, at the pace of their callers. Backward, they end. ends is the last commit between the
// delta and the next one that ended a gap, if the Feed comes to it, too; else 0.
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
		ends = -1 // It is found when a Reader needs it.
	}
	f.begin(to, ends)
	f.wake()
}

// begin has the Feed keep the deltas after a seq. mu is held.
func (f *Feed) begin(seq, batch int64) {
	f.backlog.begin(seq, batch)
	f.seq, f.batch = seq, batch
}

// wake tells all who wait. mu is held.
func (f *Feed) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

// Advance moves the Feed to a later seq. It may also be the same one, if the end of a gap has come. It reads the deltas between
// once, for all Readers. If they are more than half of the kept deltas, each Reader reads them by itself, as after SeekTo;
// SeekTo explains ends. After an error the Feed is where it was.
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

// skip moves the Feed if nobody reads.
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

// place gives the Feed's seq, and the last commit that belongs to it.
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

// read gives the deltas after one seq and up to another. fits is false if it is too much.
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

// between gives deltas of the record, and among them the ends of gaps.
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

// eventBytes is what an Event takes beside its texts.
const eventBytes = 512

// newEvent drops the parts that no watch needs.
func newEvent(v history.Version, err error) *Event {
	v.Patch, v.Object = nil, nil
	return &Event{Version: v, Err: err, size: int64(2*len(v.Doc)+len(v.Before)) + eventBytes}
}

// place is the seq up to which all has been given with the Event, and the commit up to which the ends of gaps have.
func (e *Event) place(batch int64) (seq, ends int64) {
	if e.Relist != nil {
		return e.Relist.Seq, e.Relist.Batch
	}
	return e.Seq, batch
}

// append adds what Advance has read.
func (f *Feed) append(events []*Event, to, batch int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.backlog.append(events)
	f.seq, f.batch = to, batch
	f.wake()
}
