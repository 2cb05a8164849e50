package spool

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	magic      = "kwspool2"
	suffix     = ".seg"
	recordHead = 8
	// maxHeader and maxRecord bound a length that is read from a file.
	maxHeader = 64 << 10
	maxRecord = 1 << 30
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errDamaged = errors.New("the file is damaged")
	// errTorn is damage that a crash causes: no whole record follows.
	errTorn = fmt.Errorf("%w: it is torn", errDamaged)
)

// segment is one file of records.
type segment struct {
	path       string
	header     []byte
	begun      uint64 // index with which the spool began when it was last empty
	first, end uint64 // indices of its records
	size       int64  // up to its last whole record
}

// fixedHead is the size of magic, two indices, and the length of the owner's header.
const fixedHead = len(magic) + 8 + 8 + 4

// continues reports whether two segments belong to one spool, and to one period in which it was not empty.
func (s *segment) continues(other *segment) bool {
	return s.begun == other.begun && bytes.Equal(s.header, other.header)
}

func headerSize(header []byte) int { return fixedHead + len(header) + 4 }

func segmentPath(dir string, first uint64) string {
	return filepath.Join(dir, fmt.Sprintf("%020d%s", first, suffix))
}

// create begins a segment. After an error there is no file.
func create(dir string, begun, first uint64, header []byte) (*segment, *os.File, error) {
	s := &segment{path: segmentPath(dir, first), header: header, begun: begun, first: first, end: first, size: int64(headerSize(header))}
	file, err := os.OpenFile(s.path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, nil, err
	}
	head := append(make([]byte, 0, s.size), magic...)
	head = binary.LittleEndian.AppendUint64(head, first)
	head = binary.LittleEndian.AppendUint64(head, begun)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(header)))
	head = append(head, header...)
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	if _, err = file.Write(head); err == nil {
		err = errors.Join(file.Sync(), syncDir(dir))
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close(), os.Remove(s.path))
	}
	return s, file, nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func writeRecord(to io.WriterAt, at int64, packed []byte) error {
	frame := make([]byte, recordHead, recordHead+len(packed))
	binary.LittleEndian.PutUint32(frame, uint32(len(packed)))
	frame = append(frame, packed...)
	binary.LittleEndian.PutUint32(frame[4:], checksum(frame[:4], packed))
	_, err := to.WriteAt(frame, at)
	return err
}

func checksum(length, packed []byte) uint32 {
	return crc32.Update(crc32.Checksum(length, castagnoli), castagnoli, packed)
}

// reader reads the records of one segment.
type reader struct {
	segment *segment
	file    io.Closer
	in      *bufio.Reader
	packed  []byte
}

func (s *segment) open() (*reader, error) {
	file, err := os.Open(s.path)
	if err != nil {
		return nil, err
	}
	r := &reader{segment: s, file: file, in: bufio.NewReaderSize(file, 256<<10)}
	if err := r.head(new(segment)); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *reader) close() { _ = r.file.Close() }

// head reads the header: the index of the segment's first record, the index at which the spool began, and the owner's
// header.
func (r *reader) head(into *segment) error {
	fixed := make([]byte, fixedHead)
	if _, err := io.ReadFull(r.in, fixed); err != nil {
		return damaged(err)
	}
	length := binary.LittleEndian.Uint32(fixed[fixedHead-4:])
	if !bytes.HasPrefix(fixed, []byte(magic)) || length > maxHeader {
		return errDamaged
	}
	rest := make([]byte, length+4)
	if _, err := io.ReadFull(r.in, rest); err != nil {
		return damaged(err)
	}
	into.header = rest[:length]
	if checksum(fixed, into.header) != binary.LittleEndian.Uint32(rest[length:]) {
		return errDamaged
	}
	into.first = binary.LittleEndian.Uint64(fixed[len(magic):])
	into.begun = binary.LittleEndian.Uint64(fixed[len(magic)+8:])
	return nil
}

// next returns the next record, compressed. It returns io.EOF if the file ends between two records, and errDamaged if
// no whole record comes next.
func (r *reader) next() ([]byte, error) {
	var head [recordHead]byte
	n, err := io.ReadFull(r.in, head[:])
	if n == 0 && errors.Is(err, io.EOF) {
		return nil, io.EOF
	}
	if err != nil {
		return nil, damaged(err)
	}
	length := binary.LittleEndian.Uint32(head[:4])
	if length == 0 || length > maxRecord {
		return nil, errDamaged
	}
	if r.packed, err = readN(r.in, r.packed[:0], int(length)); err != nil {
		return nil, damaged(err)
	}
	if checksum(head[:4], r.packed) != binary.LittleEndian.Uint32(head[4:]) {
		return nil, errDamaged
	}
	return r.packed, nil
}

// readN reads n bytes in steps, so that a damaged length does not allocate memory for data that is not there.
func readN(in io.Reader, into []byte, n int) ([]byte, error) {
	const step = 1 << 20
	for len(into) < n {
		from := len(into)
		into = slices.Grow(into, min(step, n-from))[:from+min(step, n-from)]
		if _, err := io.ReadFull(in, into[from:]); err != nil {
			return nil, err
		}
	}
	return into, nil
}

func (r *reader) skip(records uint64) error {
	for range records {
		if _, err := r.next(); err != nil {
			return err
		}
	}
	return nil
}

// damaged returns errDamaged if the file ends too early. It returns any other error as it is.
func damaged(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errDamaged
	}
	return err
}

// scan reads a whole segment and notes how far it is whole. If data follows that, it returns errDamaged, and errTorn if
// no whole record follows.
func (s *segment) scan() error {
	file, err := os.Open(s.path)
	if err != nil {
		return err
	}
	r := &reader{segment: s, file: file, in: bufio.NewReaderSize(file, 256<<10)}
	defer r.close()
	if err = s.read(r); !errors.Is(err, errDamaged) {
		return err
	}
	info, statErr := file.Stat()
	if statErr != nil {
		return statErr
	}
	rest := make([]byte, max(0, info.Size()-s.size))
	if _, err := file.ReadAt(rest, s.size); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if !holdsRecord(rest) {
		return errTorn
	}
	return err
}

// read reads the header and all records.
func (s *segment) read(r *reader) error {
	head := new(segment)
	err := r.head(head)
	if err == nil && head.first != s.first {
		err = errDamaged
	}
	if err != nil {
		return err
	}
	s.header, s.begun, s.end, s.size = head.header, head.begun, s.first, int64(headerSize(head.header))
	for {
		packed, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		s.end++
		s.size += int64(recordHead + len(packed))
	}
}

// maxSummed bounds the bytes that holdsRecord sums up: a second's work, and a thousand times as much as the end of a
// record needs.
const maxSummed = 1 << 32

// holdsRecord reports whether a whole record begins anywhere in data, which follows the whole records. If so, a power
// cut does not explain the damage. A cut damages only the part that was being written: its pages are on disk, or zeros,
// or missing. holdsRecord also returns true if the search would take too long (maxSummed).
func holdsRecord(data []byte) bool {
	summed := 0
	for at := 0; at+recordHead < len(data); at++ {
		length := uint64(binary.LittleEndian.Uint32(data[at:]))
		if length == 0 || length > uint64(len(data)-at-recordHead) {
			continue
		}
		if summed += int(length); summed > maxSummed {
			return true
		}
		packed := data[at+recordHead:][:length]
		if checksum(data[at:at+4], packed) == binary.LittleEndian.Uint32(data[at+4:]) {
			return true
		}
	}
	return false
}

// listSegments returns the segments of a folder in order, by their names.
func listSegments(dir string) ([]*segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []*segment
	for _, entry := range entries {
		name, ok := strings.CutSuffix(entry.Name(), suffix)
		if !ok {
			continue
		}
		first, err := strconv.ParseUint(name, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is not a segment: %w", entry.Name(), err)
		}
		all = append(all, &segment{path: filepath.Join(dir, entry.Name()), first: first, end: first})
	}
	slices.SortFunc(all, func(a, b *segment) int { return strings.Compare(a.path, b.path) })
	return all, nil
}
