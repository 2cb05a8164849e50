package deltafifo

import (
	"encoding/binary"
	"errors"
)

// ErrRecord says that a record is not that of an entry: it is damaged, or was made by another program.
var ErrRecord = errors.New("damaged: it is not the record of an entry")

// ReadRecord gives the entry of a record of the spool.
func ReadRecord(codec Codec, record []byte) (Entry, error) {
	_, _, payload, err := splitRecord(record)
	if err != nil {
		return Entry{}, err
	}
	return codec.DecodeEntry(payload)
}

// splitRecord gives the number of the FIFO, the key, and what the codec made.
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
