package postgres

import (
	"encoding/binary"
	"strings"
	"unicode/utf8"
)

// A copyBuffer builds the data of a binary COPY: https://www.postgresql.org/docs/current/sql-copy.html. The rows are encoded
// when they are made and not when they are sent, so a second attempt costs nothing, and no value passes through an interface.
type copyBuffer struct {
	b    []byte
	rows int
}

// postgresEpoch is 2000-01-01 UTC, from which PostgreSQL counts, in microseconds since 1970.
const postgresEpoch = 946_684_800_000_000

// copyTrailer takes the place of a field count at the end.
const copyTrailer = -1

func (c *copyBuffer) begin() {
	c.rows = 0
	c.b = append(c.b[:0], "PGCOPY\n\xff\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
}

func (c *copyBuffer) end() { c.count(copyTrailer) }

// fields begins a row.
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

// code is a smallint that is NULL when 0.
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

// time is a timestamptz, given in microseconds since 1970.
func (c *copyBuffer) time(micros int64) { c.int8(micros - postgresEpoch) }

func (c *copyBuffer) text(s string) {
	c.length(len(s))
	c.b = append(c.b, s...)
}

// oidText is PostgreSQL's number of the type text.
const oidText = 25

// texts is a text[] of one dimension that is NULL when empty.
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
	for _, n := range []int{1, 0, oidText, len(all), 1} { // dimensions, whether there are NULLs, the type; of the dimension its length and its first index
		c.length(n)
	}
	for _, s := range all {
		c.text(s)
	}
}

// name is a text that is NULL when empty.
func (c *copyBuffer) name(s string) {
	if s == "" {
		c.null()
		return
	}
	c.text(s)
}

// bytes is a bytea or a json; nil is NULL.
func (c *copyBuffer) bytes(b []byte) {
	if b == nil {
		c.null()
		return
	}
	c.length(len(b))
	c.b = append(c.b, b...)
}

// jsonb is a version byte and the text; nil is NULL.
func (c *copyBuffer) jsonb(b []byte) {
	if b == nil {
		c.null()
		return
	}
	c.length(len(b) + 1)
	c.b = append(append(c.b, 1), b...)
}

// clean gives s as PostgreSQL's text can hold it: UTF-8 without NUL.
func clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
