package postgres

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Batch is what Encode made of some items: the rows of one transaction. It belongs to the sink, and is valid until Commit
// has returned without an error; its memory is used again then.
type Batch struct {
	before head // that the compare-and-swap expects
	after  head // that the batch leaves
	copies copies

	lives    []life
	endings  []ending
	streams  []streamRow
	gaps     []gapChange
	excluded map[excludedKey]excludedRow
	days     []dayRow
	sweep    *sweepRow // nil for none
	stats    EncodeStats
	changed  bool // whether there is anything to commit
	notes    notes

	dirty   []*Stream
	touched []*gap
}

// notes are what a commit writes of the recorder into the head.
type notes struct {
	offset   Offset
	verified *time.Time // for heads.verified_at, nil to leave that
}

// copies are the rows of a batch that COPY sends.
type copies struct{ deltas, lives, living, ends copyBuffer }

// size is that of the rows as they are sent.
func (c *copies) size() int {
	return len(c.deltas.b) + len(c.lives.b) + len(c.living.b) + len(c.ends.b)
}

// A head is the state of a cluster's record after a batch.
type head struct {
	epoch    int64
	seq      int64
	batch    int64
	digest   [32]byte
	observed int64 // microseconds since 1970
}

type streamRow struct {
	id    int32
	state streamState
}

type gapChange struct {
	gap
	created bool // by this batch
}

type excludedKey struct {
	stream int32
	uid    types.UID
}

// An excludedRow is a row of exclusions that is to be there after the batch, or not to be.
type excludedRow struct {
	present         bool
	namespace, name string
	at              int64
}

// A dayRow is what a batch adds to a row of days.
type dayRow struct {
	day               int32 // since 1970
	created           bool
	firstSeq, lastSeq int64
	firstAt, lastAt   int64
}

// Empty reports whether there is nothing to commit, because all was recorded already.
func (b *Batch) Empty() bool { return !b.changed }

// Rows is the number of deltas in it.
func (b *Batch) Rows() int { return b.stats.Rows }

// Bytes is the size of its rows as they are sent.
func (b *Batch) Bytes() int { return b.copies.size() }

// LastSeq is the seq of the last delta up to and with this batch.
func (b *Batch) LastSeq() int64 { return b.after.seq }

// Observed is when the last thing in it was observed.
func (b *Batch) Observed() time.Time { return micros(b.after.observed) }

// firstSeq is the seq of its first delta, if it has any.
func (b *Batch) firstSeq() int64 { return b.before.seq + 1 }

// maxSpare bounds the buffer that is kept for the next batch: 32 MiB.
const maxSpare = 32 << 20

// reset empties the batch and keeps its memory.
func (b *Batch) reset() {
	clear(b.lives)
	clear(b.streams)
	clear(b.gaps)
	clear(b.dirty)
	clear(b.touched)
	clear(b.excluded)
	*b = Batch{
		copies: b.copies,
		lives:  b.lives[:0], endings: b.endings[:0], streams: b.streams[:0], gaps: b.gaps[:0], excluded: b.excluded, days: b.days[:0], dirty: b.dirty[:0], touched: b.touched[:0],
	}
	if cap(b.copies.deltas.b) > maxSpare {
		b.copies.deltas.b = nil
	}
}

// life gives the life of that object_id, nil if it began before the batch.
func (b *Batch) life(objectID int64) *life {
	i, ok := slices.BinarySearchFunc(b.lives, objectID, func(l life, id int64) int { return cmp.Compare(l.ObjectID, id) })
	if !ok {
		return nil
	}
	return &b.lives[i]
}

func micros(n int64) time.Time { return time.UnixMicro(n).UTC() }

const microsPerDay = 24 * 60 * 60 * 1_000_000

// dayOf gives the UTC day since 1970 of a time in microseconds.
func dayOf(micros int64) int32 {
	day := micros / microsPerDay
	if micros%microsPerDay < 0 {
		day--
	}
	return int32(day)
}

// dayText is a day as SQL takes it, whatever the session's time zone is.
func dayText(day int32) string { return micros(int64(day) * microsPerDay).Format(time.DateOnly) }
