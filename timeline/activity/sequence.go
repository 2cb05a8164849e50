package activity

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/kuberewind/kuberewind/timeline/internal/class"
)

// A kind holds everything that the filters of a strip distinguish.
type kind struct {
	stream             int32
	namespace, manager string
	class              class.Class
}

// A sequence holds the deltas of a block one by one. For bars that are shorter than a minute, no count made ahead can be
// much shorter than this.
//
// Its bytes hold two varints for each seq (encoding/binary): the number of its kind, and the milliseconds since the
// previous delta. The first delta counts from 1970.
type sequence struct {
	kinds []kind // in the order of their first deltas
	bytes []byte
}

// A sequencer builds a sequence, delta by delta.
type sequencer struct {
	sequence
	numbers map[kind]uint64
	before  int64
}

func (s *sequencer) add(k kind, ms int64) {
	number, known := s.numbers[k]
	if !known {
		if s.numbers == nil {
			s.numbers = map[kind]uint64{}
		}
		number = uint64(len(s.kinds))
		s.numbers[k], s.kinds = number, append(s.kinds, k)
	}
	s.bytes = binary.AppendVarint(binary.AppendUvarint(s.bytes, number), ms-s.before)
	s.before = ms
}

var errBadSequence = errors.New("its sequence does not end with its last seq")

// decode calls give with the kind number and the time of each delta. It refuses bytes that do not hold exactly n deltas.
// The caller must then discard everything that it received.
func decode(bytes []byte, kinds int, n int64, give func(i int64, kind int, ms int64)) error {
	ms := int64(0)
	for i := range n {
		number, length := binary.Uvarint(bytes)
		if length <= 0 || number >= uint64(kinds) {
			return errBadSequence
		}
		bytes = bytes[length:]
		distance, length := binary.Varint(bytes)
		if length <= 0 {
			return errBadSequence
		}
		bytes = bytes[length:]
		ms += distance
		give(i, int(number), ms)
	}
	if len(bytes) > 0 {
		return errBadSequence
	}
	return nil
}

// columns puts the kinds of a sequence into columns. They have no counts.
func (s *sequence) columns() *columns {
	c := newColumns()
	c.deltas = s.bytes
	for _, k := range s.kinds {
		c.streams, c.namespaces = append(c.streams, k.stream), append(c.namespaces, k.namespace)
		c.managers, c.classes = append(c.managers, k.manager), append(c.classes, string(k.class))
	}
	return c
}

// A moment is one delta of a sequence.
type moment struct {
	kind
	ms int64
}

// moments reads columns that hold a sequence of n deltas.
func (c *columns) moments(n int64) (all []moment, err error) {
	if len(c.streams) != len(c.classes) || len(c.namespaces) != len(c.classes) || len(c.managers) != len(c.classes) {
		return nil, errLengths
	}
	err = decode(c.deltas, len(c.classes), n, func(_ int64, i int, ms int64) {
		all = append(all, moment{kind{c.streams[i], c.namespaces[i], c.managers[i], class.Class(c.classes[i])}, ms})
	})
	return all, err
}

// firstDifference describes the first delta of a block that differs from the columns, "" if there is none.
func (s *sequence) firstDifference(c *columns, b Block, names map[int32]string) string {
	n := b.Last - b.First + 1
	there, err := c.moments(n)
	if err != nil {
		return err.Error()
	}
	right, err := s.columns().moments(n)
	if err != nil {
		return err.Error()
	}
	text := func(m moment) string {
		return time.UnixMilli(m.ms).UTC().Format("2006-01-02T15:04:05.000Z") + ", " + names[m.stream] + m.rest()
	}
	for i := range right {
		if there[i] != right[i] {
			return fmt.Sprintf("seq %d is on record as %s, and it is %s", b.First+int64(i), text(there[i]), text(right[i]))
		}
	}
	return ""
}
