package spool

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// Cursor says how far the owner has come: everything before Done is where the owner brings its records, which is then in the state Mark.
// Everything before Next is, too, if that state is NextMark: the owner is about to bring it there.
type Cursor struct {
	Done     uint64 `json:"done"`
	Mark     []byte `json:"mark"`
	Next     uint64 `json:"next"`
	NextMark []byte `json:"next_mark"`
}

// The cursor's file has two slots of one sector each.
const (
	slotBytes = 512
	slotHead  = 4 + 2 + 8 // checksum, length, generation
)

// Cursor is the one that was written last.
func (s *Spool) Cursor() Cursor { return s.cursor }

// SetCursor writes the cursor, and returns when it is on disk.
func (s *Spool) SetCursor(done uint64, mark []byte, next uint64, nextMark []byte) error {
	c := Cursor{Done: done, Mark: mark, Next: next, NextMark: nextMark}
	text, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("spool: cursor: %w", err)
	}
	if len(text) > slotBytes-slotHead {
		return fmt.Errorf("spool: a cursor of %d bytes", len(text))
	}
	if s.o.ReadOnly {
		return fmt.Errorf("spool: write the cursor: %w", syscall.EROFS)
	}
	slot := make([]byte, slotBytes)
	binary.LittleEndian.PutUint16(slot[4:], uint16(len(text)))
	binary.LittleEndian.PutUint64(slot[6:], s.generation+1)
	copy(slot[slotHead:], text)
	binary.LittleEndian.PutUint32(slot, crc32.Checksum(slot[4:], castagnoli))
	if _, err = s.cursorFile.WriteAt(slot, int64((s.generation+1)%2)*slotBytes); err == nil {
		err = s.cursorFile.Sync()
	}
	if err != nil {
		return fmt.Errorf("spool: write the cursor: %w", err)
	}
	s.generation++
	s.cursor = c
	return nil
}

// openCursor opens the file, made whole at once so that later writes need no room.
func (s *Spool) openCursor() error {
	how := os.O_RDONLY
	if !s.o.ReadOnly {
		how = os.O_RDWR | os.O_CREATE
	}
	var err error
	if s.cursorFile, err = os.OpenFile(filepath.Join(s.o.Dir, "cursor"), how, 0o600); err != nil {
		return err
	}
	both := make([]byte, 2*slotBytes)
	n, err := s.cursorFile.ReadAt(both, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	for i := 0; i+slotBytes <= n; i += slotBytes {
		s.takeSlot(both[i : i+slotBytes])
	}
	if n == len(both) || s.o.ReadOnly {
		return nil
	}
	if _, err := s.cursorFile.WriteAt(both, 0); err != nil {
		return err
	}
	return errors.Join(s.cursorFile.Sync(), syncDir(s.o.Dir))
}

// takeSlot takes the slot if it is whole and newer.
func (s *Spool) takeSlot(slot []byte) {
	length, generation := int(binary.LittleEndian.Uint16(slot[4:])), binary.LittleEndian.Uint64(slot[6:])
	if binary.LittleEndian.Uint32(slot) != crc32.Checksum(slot[4:], castagnoli) || length > slotBytes-slotHead || generation <= s.generation {
		return
	}
	var c Cursor
	if json.Unmarshal(slot[slotHead:slotHead+length], &c) == nil {
		s.cursor, s.generation = c, generation
	}
}
