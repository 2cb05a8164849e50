package deltafifo

import (
	"encoding/binary"
	"errors"
)

// ErrRecord says that a record is not the record of an entry: it is damaged, or another program made it.
var ErrRecord = errors.New("damaged: it is not the record of an entry")

// records writes nodes to the spool, and reads them back. The queue's lock protects it.
type records struct {
	spool  Spool
	codec  Codec
	buffer []byte
	reader uint64 // the record that the spool reads next

	feeders   map[uint64]*feeder // by their numbers in the records of this process
	last      uint64             // the last number of a feeder
	recovered uint64             // an earlier process wrote the records before this one
}

func newRecords(spool Spool, codec Codec) records {
	r := records{spool: spool, codec: codec, reader: spool.First(), feeders: map[uint64]*feeder{}, recovered: spool.Next()}
	spool.SeekTo(r.reader)
	return r
}

// number gives a feeder the number by which records refer to it.
func (r *records) number(f *feeder) {
	if r.spool != nil {
		r.last++
		f.number = r.last
		r.feeders[f.number] = f
	}
}

func (r *records) forget(f *feeder) { delete(r.feeders, f.number) }

func (r *records) append(index uint64, n *node) error {
	number := uint64(0)
	if n.feeder != nil {
		number = n.feeder.number
	}
	r.buffer = binary.AppendUvarint(r.buffer[:0], number)
	r.buffer = binary.AppendUvarint(r.buffer, uint64(len(n.key)))
	r.buffer = append(r.buffer, n.key...)
	var err error
	if r.buffer, err = r.codec.AppendEntry(r.buffer, &n.entry); err != nil {
		return err
	}
	return r.spool.Append(index, r.buffer)
}

func (r *records) read(index uint64, into *node) error {
	if r.reader != index {
		r.spool.SeekTo(index) // The records in between are in memory already.
	}
	r.reader = index + 1
	record, ok, err := r.spool.Read()
	if err != nil {
		return err
	}
	if !ok {
		return ErrRecord
	}
	number, key, payload, err := splitRecord(record)
	if err != nil {
		return err
	}
	into.key, into.record = key, index
	if into.entry, err = r.codec.DecodeEntry(payload); err != nil {
		return err
	}
	if index >= r.recovered {
		into.feeder = r.feeders[number]
	}
	return nil
}

// ReadRecord returns the entry of a record of the spool.
func ReadRecord(codec Codec, record []byte) (Entry, error) {
	_, _, payload, err := splitRecord(record)
	if err != nil {
		return Entry{}, err
	}
	return codec.DecodeEntry(payload)
}

// splitRecord returns the number of the FIFO, the key, and the codec's part.
func splitRecord(record []byte) (number uint64, key string, payload []byte, err error) {
	number, a := binary.Uvarint(record)
	if a <= 0 {
		return 0, "", nil, ErrRecord
	}
	length, b := binary.Uvarint(record[a:])
	if b <= 0 || uint64(len(record)-a-b) < length {
		return 0, "", nil, ErrRecord
	}
	end := a + b + int(length)
	return number, string(record[a+b : end]), record[end:], nil
}
