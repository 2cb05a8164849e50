package checkpoint

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/zstd"

	"github.com/kuberewind/kuberewind/patch"
)

const (
	// blockRecords ends a block: after 256 objects of a kind, more objects hardly improve compression.
	blockRecords = 256
	// blockBytes ends a block of large objects, so that memory can hold several blocks.
	blockBytes = 4 << 20
	// MaxBlock bounds the decoded size of a block: one object can be longer than blockBytes.
	MaxBlock = 1 << 30

	// A zstd frame consists of zstd's own blocks. The shortest has 4 bytes, and none decodes to more than 128 KiB.
	shortestPart = 4
	largestPart  = 128 << 10
	// undeclared bounds the size of a frame without a declared size: the encoder declares larger sizes.
	undeclared = 256

	// The first byte gives the kind of a block, and its format.
	kindRecords   = 0x11
	kindDirectory = 0x12
)

// A Record is an object that was live.
type Record struct {
	ObjectID             int64
	Seq                  int64 // of its last delta
	Stream               int32
	Namespace, Name, UID string
	RV, Version          string
	Digest               [16]byte
	Doc                  patch.Doc
}

// A Key is the sort key of a record.
type Key struct {
	Stream          int32
	Namespace, Name string
}

// Key returns the key of the record.
func (r *Record) Key() Key { return Key{r.Stream, r.Namespace, r.Name} }

// Compare orders keys.
func (k Key) Compare(other Key) int {
	return cmp.Or(cmp.Compare(k.Stream, other.Stream), cmp.Compare(k.Namespace, other.Namespace), cmp.Compare(k.Name, other.Name))
}

// ErrBlock says that bytes are not a block.
var ErrBlock = errors.New("not a block of a checkpoint")

// An encoder encodes blocks.
type encoder struct {
	zstd  *zstd.Encoder
	plain []byte
}

// newEncoder returns an encoder. It needs no Close.
func newEncoder() *encoder {
	writer, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault))
	if err != nil {
		panic(err) // the options are constants
	}
	return &encoder{zstd: writer}
}

// Block encodes records.
func (e *encoder) Block(records []Record) []byte {
	b := append(e.plain[:0], kindRecords)
	b = binary.AppendUvarint(b, uint64(len(records)))
	for i := range records {
		r := &records[i]
		b = binary.AppendVarint(b, r.ObjectID)
		b = binary.AppendVarint(b, r.Seq)
		b = binary.AppendVarint(b, int64(r.Stream))
		for _, text := range [...]string{r.Namespace, r.Name, r.UID, r.RV, r.Version} {
			b = appendText(b, text)
		}
		b = append(b, r.Digest[:]...)
		b = appendText(b, r.Doc)
	}
	e.plain = b
	return e.zstd.EncodeAll(b, nil)
}

// Directory encodes the first key of each block.
func (e *encoder) Directory(first []Key) []byte {
	b := append(e.plain[:0], kindDirectory)
	b = binary.AppendUvarint(b, uint64(len(first)))
	for _, k := range first {
		b = binary.AppendVarint(b, int64(k.Stream))
		b = appendText(b, k.Namespace)
		b = appendText(b, k.Name)
	}
	e.plain = b
	return e.zstd.EncodeAll(b, nil)
}

func appendText[T string | patch.Doc](b []byte, text T) []byte {
	b = binary.AppendUvarint(b, uint64(len(text)))
	return append(b, text...)
}

// A Decoder decodes blocks.
type Decoder struct{ zstd *zstd.Decoder }

// NewDecoder returns a Decoder. Close frees its memory.
func NewDecoder() *Decoder {
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderMaxMemory(MaxBlock), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic(err) // the options are constants
	}
	return &Decoder{zstd: decoder}
}

// Close frees the memory of the decoder.
func (d *Decoder) Close() { d.zstd.Close() }

// Block decodes records. Their documents share memory. The error wraps ErrBlock. Block does not compare digests.
func (d *Decoder) Block(data []byte) ([]Record, error) {
	r, n, err := d.open(data, kindRecords)
	if err != nil {
		return nil, err
	}
	records := make([]Record, 0, min(n, uint64(len(r.rest)/minRecord)))
	for range n {
		var record Record
		record.ObjectID, record.Seq, record.Stream = r.varint(), r.varint(), int32(r.varint())
		record.Namespace, record.Name, record.UID = r.text(), r.text(), r.text()
		record.RV, record.Version = r.text(), r.text()
		copy(record.Digest[:], r.bytes(uint64(len(record.Digest))))
		record.Doc = patch.Doc(r.bytes(r.uvarint()))
		if r.failed {
			break
		}
		records = append(records, record)
	}
	return records, r.end()
}

// Directory decodes the first keys of the blocks.
func (d *Decoder) Directory(data []byte) ([]Key, error) {
	r, n, err := d.open(data, kindDirectory)
	if err != nil {
		return nil, err
	}
	keys := make([]Key, 0, min(n, uint64(len(r.rest)/minKey)))
	for range n {
		k := Key{Stream: int32(r.varint()), Namespace: r.text(), Name: r.text()}
		if r.failed {
			break
		}
		keys = append(keys, k)
	}
	return keys, r.end()
}

// These are the least sizes of a record and of a key in bytes. With them, the decoder bounds its first allocation.
const (
	minRecord = 3 + 5 + 16 + 1
	minKey    = 3
)

// decodedSize returns the size that the data declares, or the largest size that needs no declaration. It refuses data that
// is too short for the declared size, because the decoder allocates the memory before it decodes the first byte.
func decodedSize(data []byte) (uint64, error) {
	var header zstd.Header
	if err := header.Decode(data); err != nil {
		return 0, fmt.Errorf("%w: %w", ErrBlock, err)
	}
	if !header.HasFCS {
		return undeclared, nil
	}
	most := min(uint64(len(data))/shortestPart*largestPart, MaxBlock)
	if header.FrameContentSize > most {
		return 0, fmt.Errorf("%w: it declares %d bytes, and has room for %d", ErrBlock, header.FrameContentSize, most)
	}
	return header.FrameContentSize, nil
}

func (d *Decoder) open(data []byte, kind byte) (*reader, uint64, error) {
	size, err := decodedSize(data)
	if err != nil {
		return nil, 0, err
	}
	plain, err := d.zstd.DecodeAll(data, make([]byte, 0, size))
	if err != nil {
		return nil, 0, fmt.Errorf("%w: %w", ErrBlock, err)
	}
	if len(plain) == 0 || plain[0] != kind {
		return nil, 0, fmt.Errorf("%w: it has another kind", ErrBlock)
	}
	r := &reader{rest: plain[1:]}
	return r, r.uvarint(), nil
}

// A reader reads values from bytes until it fails.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) uvarint() uint64 {
	n, size := binary.Uvarint(r.rest)
	return took(r, n, size)
}

func (r *reader) varint() int64 {
	n, size := binary.Varint(r.rest)
	return took(r, n, size)
}

func took[T int64 | uint64](r *reader, n T, size int) T {
	if size <= 0 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return n
}

func (r *reader) bytes(n uint64) []byte {
	if n > uint64(len(r.rest)) {
		r.failed, r.rest = true, nil
		return nil
	}
	taken := r.rest[:n:n]
	r.rest = r.rest[n:]
	return taken
}

func (r *reader) text() string { return string(r.bytes(r.uvarint())) }

func (r *reader) end() error {
	if r.failed || len(r.rest) > 0 {
		return fmt.Errorf("%w: it is truncated, or has bytes after its end", ErrBlock)
	}
	return nil
}

// covering returns the numbers of the blocks that can hold keys of a range, from the first keys of the blocks. The
// directory is block 0, so the first block with records has number 1.
func covering(first []Key, from, to Key) []int32 {
	var blocks []int32
	for i := range first {
		if first[i].Compare(to) > 0 {
			break
		}
		if i+1 < len(first) && first[i+1].Compare(from) < 0 {
			continue
		}
		blocks = append(blocks, int32(i+1))
	}
	return blocks
}
