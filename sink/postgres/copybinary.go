package postgres

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// A copyBuffer builds the data of a binary COPY: https://www.postgresql.org/docs/current/sql-copy.html. The encoder
// fills it when it makes the rows, so a retry costs nothing, and no value passes through an interface.
type copyBuffer struct {
	b    []byte
	rows int
}

// postgresEpoch is the time from which PostgreSQL counts, 2000-01-01 UTC, in microseconds since 1970.
const postgresEpoch = 946_684_800_000_000

// copyTrailer stands in place of a field count at the end of the data.
const copyTrailer = -1

func (c *copyBuffer) begin() {
	c.rows = 0
	c.b = append(c.b[:0], "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
}

func (c *copyBuffer) end() { c.count(copyTrailer) }

// fields begins a row of n fields.
func (c *copyBuffer) fields(n int16) {
	c.rows++
	c.count(n)
}

func (c *copyBuffer) count(n int16) { c.b = binary.BigEndian.AppendUint16(c.b, uint16(n)) }

func (c *copyBuffer) length(n int) { c.b = binary.BigEndian.AppendUint32(c.b, uint32(n)) }

func (c *copyBuffer) null() { c.length(-1) }

func (c *copyBuffer) int2(n int16) {
	c.length(2)
	c.b = binary.BigEndian.AppendUint16(c.b, uint16(n))
}

// code appends a smallint, or NULL for 0.
func (c *copyBuffer) code(n int16) {
	if n == 0 {
		c.null()
		return
	}
	c.int2(n)
}

func (c *copyBuffer) int4(n int32) {
	c.length(4)
	c.b = binary.BigEndian.AppendUint32(c.b, uint32(n))
}

func (c *copyBuffer) int8(n int64) {
	c.length(8)
	c.b = binary.BigEndian.AppendUint64(c.b, uint64(n))
}

// time appends a timestamptz, given in microseconds since 1970.
func (c *copyBuffer) time(micros int64) { c.int8(micros - postgresEpoch) }

func (c *copyBuffer) text(s string) {
	c.length(len(s))
	c.b = append(c.b, s...)
}

// oidText is PostgreSQL's number of the type text.
const oidText = 25

// texts appends a text[] of one dimension, or NULL if it is empty.
func (c *copyBuffer) texts(all []string) {
	if len(all) == 0 {
		c.null()
		return
	}
	size := 5 * 4
	for _, s := range all {
		size += 4 + len(s)
	}
	c.length(size)
	for _, n := range []int{1, 0, oidText, len(all), 1} { // number of dimensions, whether there are NULLs, element type, length, first index
		c.length(n)
	}
	for _, s := range all {
		c.text(s)
	}
}

// name appends a text, or NULL if it is empty.
func (c *copyBuffer) name(s string) {
	if s == "" {
		c.null()
		return
	}
	c.text(s)
}

// bytes appends a bytea or a json, or NULL for nil.
func (c *copyBuffer) bytes(b []byte) {
	if b == nil {
		c.null()
		return
	}
	c.length(len(b))
	c.b = append(c.b, b...)
}

// jsonb appends a version byte and the text, or NULL for nil.
func (c *copyBuffer) jsonb(b []byte) {
	if b == nil {
		c.null()
		return
	}
	c.length(len(b) + 1)
	c.b = append(append(c.b, 1), b...)
}

// clean returns s in a form that PostgreSQL's text can hold: UTF-8 without NUL.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
