package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// recover finds the segments, keeps those that follow each other without a break, and sets the rest aside.
func (s *Spool) recover() error {
	found, err := listSegments(s.o.Dir)
	if err != nil {
		return err
	}
	for i, segment := range found {
		if len(s.segments) > 0 && s.last().end != segment.first {
			return s.setAside(found[i:])
		}
		err := segment.scan()
		if err != nil && !errors.Is(err, errDamaged) {
			return err
		}
		if len(s.segments) > 0 && segment.end > segment.first && !segment.continues(s.segments[0]) {
			return s.setAside(found[i:]) // An operator has moved it here.
		}
		if more := found[i+1:]; err != nil && (len(more) > 0 || !errors.Is(err, errTorn)) {
			return errors.Join(s.keepBeginning(segment), s.setAside(more))
		}
		if err := s.adopt(segment); err != nil {
			return err
		}
	}
	return nil
}

// keepBeginning goes on with what is whole of a damaged segment, and sets a copy of all of it aside.
func (s *Spool) keepBeginning(damaged *segment) error {
	if damaged.end == damaged.first {
		return s.setAside([]*segment{damaged})
	}
	if err := s.copyAside(damaged); err != nil {
		return err
	}
	return s.adopt(damaged)
}

// adopt takes a segment as far as it is whole.
func (s *Spool) adopt(segment *segment) error {
	if s.o.ReadOnly {
		if segment.end > segment.first {
			s.segments = append(s.segments, segment)
			s.bytes += segment.size
		}
		return nil
	}
	if segment.end == segment.first {
		// Begun and never written to. The next one will have its name.
		return os.Remove(segment.path)
	}
	file, err := os.OpenFile(segment.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := file.Truncate(segment.size); err != nil {
		return errors.Join(err, file.Close())
	}
	if s.file != nil {
		_ = s.file.Close()
	}
	s.file = file
	s.segments = append(s.segments, segment)
	s.bytes += segment.size
	return nil
}

// SetAside moves all that is there to a folder of its own, which it returns, and goes on empty. After an error it is to be closed.
func (s *Spool) SetAside() (folder string, err error) {
	s.endReading()
	if s.file != nil {
		_ = s.file.Close()
		s.file = nil
	}
	all := s.segments
	s.segments, s.bytes = nil, 0
	s.released, s.read = s.next, s.next
	if err := s.setAside(all); err != nil {
		return "", fmt.Errorf("spool: set aside: %w", err)
	}
	return s.asideDir, nil
}

func (s *Spool) setAside(segments []*segment) error {
	if err := s.makeAside(); err != nil {
		return err
	}
	for _, segment := range segments {
		if err := os.Rename(segment.path, filepath.Join(s.asideDir, filepath.Base(segment.path))); err != nil {
			return err
		}
	}
	return nil
}

// copyAside keeps a damaged segment whose beginning goes on being used.
func (s *Spool) copyAside(segment *segment) error {
	if err := s.makeAside(); err != nil {
		return err
	}
	data, err := os.ReadFile(segment.path)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.asideDir, filepath.Base(segment.path)), data, 0o600)
}

// AsidePrefix begins the names of the folders in a spool's for what is set aside.
const AsidePrefix = "aside-"

func (s *Spool) makeAside() (err error) {
	if s.o.ReadOnly {
		return syscall.EROFS
	}
	if s.asideDir == "" {
		s.asideDir, err = os.MkdirTemp(s.o.Dir, AsidePrefix+time.Now().UTC().Format("20060102T150405Z")+"-")
	}
	return err
}
