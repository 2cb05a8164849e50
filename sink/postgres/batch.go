package postgres

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A Batch holds the rows that Encode made of some items, for one transaction. It belongs to the sink and is valid until
// Commit returns without an error. After that, the sink reuses its memory.
type Batch struct {
	before head // the head that the compare-and-swap expects
	after  head // the head after the commit
	copies copies

	lives    []life
	endings  []ending
	streams  []streamRow
	gaps     []gapChange
	excluded map[excludedKey]excludedRow
	days     []dayRow
	sweep    *sweepRow // nil if no sweep is complete
	stats    EncodeStats
	changed  bool // whether there is anything to commit
	notes    notes

	dirty   []*Stream
	touched []*gap
}

// notes are what a commit writes about the recorder into the head.
type notes struct {
	offset   Offset
	verified *time.Time // for heads.verified_at; nil keeps the value there
}

// copies are the rows of a batch that are sent by COPY.
type copies struct{ deltas, lives, living, ends copyBuffer }

// size returns the size of the rows as they are sent, in bytes.
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

// An excludedRow says whether a row of exclusions exists after the batch, and what it holds.
type excludedRow struct {
	present         bool
	namespace, name string
	at              int64
}

// A dayRow is a batch's change to a row of days.
type dayRow struct {
	day               int32 // since 1970
	created           bool
	firstSeq, lastSeq int64
	firstAt, lastAt   int64
}

// Empty reports whether there is nothing to commit, because everything was already recorded.
func (b *Batch) Empty() bool { return !b.changed }

// Rows returns the number of deltas in the batch.
func (b *Batch) Rows() int { return b.stats.Rows }

// Bytes returns the size of the rows as they are sent.
func (b *Batch) Bytes() int { return b.copies.size() }

// LastSeq returns the seq of the last delta up to and including this batch.
func (b *Batch) LastSeq() int64 { return b.after.seq }

// Observed returns when the last item of the batch was observed.
func (b *Batch) Observed() time.Time { return micros(b.after.observed) }

// firstSeq returns the seq of the first delta of the batch, if it has any.
func (b *Batch) firstSeq() int64 { return b.before.seq + 1 }

// maxSpare bounds the buffer that the sink keeps for the next batch: 32 MiB.
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

// life returns the life with this object_id, or nil if it began before the batch.
func (b *Batch) life(objectID int64) *life {
	i, ok := slices.BinarySearchFunc(b.lives, objectID, func(l life, id int64) int { return cmp.Compare(l.ObjectID, id) })
	if !ok {
		return nil
	}
	return &b.lives[i]
}

func micros(n int64) time.Time { return time.UnixMicro(n).UTC() }

const microsPerDay = 24 * 60 * 60 * 1_000_000

// dayOf returns the UTC day of a time, as days since 1970. The time is in microseconds since 1970.
func dayOf(micros int64) int32 {
	day := micros / microsPerDay
	if micros%microsPerDay < 0 {
		day--
	}
	return int32(day)
}

// dayText spells a day for SQL. The time zone of the session does not matter.
func dayText(day int32) string { return micros(int64(day) * microsPerDay).Format(time.DateOnly) }
