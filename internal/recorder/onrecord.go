package recorder

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// spoolOnRecord is the first entry that is not on record, if the disk took no cursor any more that says it. It compares the
// rows behind the state that the cursor names with the entries. An entry has the time and resource version of its row. The
// error is errOvertaken if a row is not of this spool.
func spoolOnRecord(s *spool.Spool, codec deltafifo.Codec, readSince func(mark []byte, afterSeq int64) (*postgres.Since, error)) (from uint64, err error) {
	var was spoolOwner
	if err := json.Unmarshal(s.Header(), &was); err != nil {
		return 0, errForeign
	}
	cursor := s.Cursor()
	if cursor.Done < s.First() {
		return cursor.Done, nil // What is missing is told by whoever asked.
	}
	since, err := readSince(cursor.Mark, was.AfterSeq)
	if errors.Is(err, postgres.ErrNoMark) {
		return 0, errOvertaken
	}
	if err != nil {
		return 0, err
	}
	defer since.Close()
	defer s.SeekTo(s.First())
	s.SeekTo(cursor.Done)
	t := trail{spool: s, codec: codec, index: cursor.Done, next: cursor.Done, at: since.At, when: since.At}
	for {
		row, ok, err := since.Next()
		if err != nil {
			return 0, err
		}
		if !ok {
			return t.rest(since.Head)
		}
		if ended, err := t.match(row); ended || err != nil {
			return s.Next(), err
		}
	}
}

// A trail goes through the entries of a spool beside the rows of a record.
type trail struct {
	spool *spool.Spool
	codec deltafifo.Codec

	entry   deltafifo.Entry
	taken   bool      // it has its row
	index   uint64    // of the next one to be read
	at      time.Time // as it stands on record with the entry: it does not decrease
	matched int       // rows
	next    uint64    // the first entry behind the last that a row matches
	when    time.Time // of that
	deltas  int       // entries behind it that would have rows
}

// read goes one entry further.
func (t *trail) read() (ok bool, err error) {
	record, ok, err := t.spool.Read()
	if !ok || err != nil {
		if err != nil {
			err = fmt.Errorf("%w: %w", errUnreadable, err)
		}
		return false, err
	}
	t.index++
	t.taken = false
	t.entry, err = deltafifo.ReadRecord(t.codec, record)
	if errors.Is(err, deltafifo.ErrRecord) {
		err = fmt.Errorf("%w: %w", errUnreadable, err)
	}
	t.at = latest(t.at, t.entry.Observed.Truncate(time.Microsecond))
	if t.entry.Delta.Type != "" {
		t.deltas++
	}
	return err == nil, err
}

// match finds the entry of a row. Some entries have no row, because the record knew them already. An entry that recreates an
// object may have two. The spool has ended if all of it has rows and this row was seen after all of it.
func (t *trail) match(row postgres.Recorded) (ended bool, err error) {
	for t.taken || !t.is(row) {
		ok, err := t.read()
		if err != nil {
			return false, err
		}
		if !ok {
			if t.matched > 0 && t.deltas == 0 && row.Observed.After(t.at) {
				return true, nil
			}
			return false, errOvertaken
		}
		if t.at.After(row.Observed) {
			return false, errOvertaken
		}
	}
	t.matched++
	t.taken = row.Deleted == (t.entry.Delta.Type == delta.Deleted)
	t.next, t.when, t.deltas = t.index, t.at, 0
	return false, nil
}

func (t *trail) is(row postgres.Recorded) bool {
	return t.entry.Delta.Type != "" && t.at.Equal(row.Observed) && rvOf(&t.entry) == row.RV && (row.Deleted || t.entry.Delta.Type != delta.Deleted)
}

// rvOf is the resource version of the row that an entry makes.
func rvOf(e *deltafifo.Entry) string {
	switch obj := e.Delta.Object.(type) {
	case cache.DeletedFinalStateUnknown:
		return e.ListRV
	case interface{ GetResourceVersion() string }:
		return obj.GetResourceVersion()
	}
	return ""
}

// rest passes over the bookmarks and markers behind the last row that are on record, too: those that are older than the
// record's end, and one that is its end. If several have that time, they cannot be told apart, and are recorded again.
// Bookmarks do not show. A gap that a list has ended then has a second gap of no length.
func (t *trail) rest(head time.Time) (from uint64, err error) {
	from, ends := t.next, 0
	for {
		ok, err := t.read()
		if err != nil {
			return 0, err
		}
		if !ok || t.at.After(head) {
			break
		}
		if t.at.Equal(head) {
			ends++
		}
		if t.deltas > 0 {
			ends = 0
			break
		}
		if t.at.Before(head) {
			from = t.index
		}
	}
	switch lone := ends == 1 && t.when.Before(head); {
	case lone:
		return from + 1, nil
	case t.matched == 0:
		return 0, errOvertaken
	}
	return from, nil
}

// latest is the later one.
func latest(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
