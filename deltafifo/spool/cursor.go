package spool

import (
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// cursor reads the records of segments, one after the other.
type cursor struct {
	index   uint64  // of the next record
	reading *reader // of the segment that has it, nil if it is not open
	plain   []byte
}

// read returns the next record of the segments. It is valid until the next call.
func (c *cursor) read(segments []*segment) ([]byte, error) {
	packed, err := c.packed(segments)
	if err == nil {
		c.plain, err = s2.Decode(c.plain[:cap(c.plain)], packed)
	}
	if err != nil {
		return nil, fmt.Errorf("spool: read record %d: %w", c.index, err)
	}
	c.index++
	return c.plain, nil
}

func (c *cursor) packed(segments []*segment) ([]byte, error) {
	if c.reading == nil || c.index == c.reading.segment.end {
		if err := c.open(segments); err != nil {
			return nil, err
		}
	}
	return c.reading.next()
}

func (c *cursor) open(segments []*segment) error {
	c.close()
	for _, segment := range segments {
		if c.index >= segment.first && c.index < segment.end {
			r, err := segment.open()
			if err != nil {
				return err
			}
			c.reading = r
			return r.skip(c.index - segment.first)
		}
	}
	return errors.New("no segment has it")
}

func (c *cursor) seek(index uint64) {
	c.close()
	c.index = index
}

// closeIn closes the reader if it reads this segment, which is deleted next.
func (c *cursor) closeIn(segment *segment) {
	if c.reading != nil && c.reading.segment == segment {
		c.close()
	}
}

func (c *cursor) close() {
	if c.reading != nil {
		c.reading.close()
		c.reading = nil
	}
}
