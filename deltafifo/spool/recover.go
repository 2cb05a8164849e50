package spool

import (
	"errors"
	"os"
)

// recover finds the segments, keeps those that follow each other without a break, and sets the rest aside.
func (f *files) recover() error {
	found, err := listSegments(f.dir)
	if err != nil {
		return err
	}
	for i, segment := range found {
		if !f.empty() && f.last().end != segment.first {
			return f.aside.move(found[i:])
		}
		err := segment.scan()
		if err != nil && !errors.Is(err, errDamaged) {
			return err
		}
		if !f.empty() && segment.end > segment.first && !segment.continues(f.segments[0]) {
			return f.aside.move(found[i:]) // An operator has moved it here.
		}
		if more := found[i+1:]; err != nil && (len(more) > 0 || !errors.Is(err, errTorn)) {
			return errors.Join(f.keepBeginning(segment), f.aside.move(more))
		}
		if err := f.adopt(segment); err != nil {
			return err
		}
	}
	return nil
}

// keepBeginning goes on with the whole part of a damaged segment, and sets a copy of the file aside.
func (f *files) keepBeginning(damaged *segment) error {
	if damaged.end == damaged.first {
		return f.aside.move([]*segment{damaged})
	}
	if err := f.aside.copy(damaged); err != nil {
		return err
	}
	return f.adopt(damaged)
}

// adopt takes over a segment as far as it is whole.
func (f *files) adopt(segment *segment) error {
	if f.readOnly {
		if segment.end > segment.first {
			f.segments = append(f.segments, segment)
			f.bytes += segment.size
		}
		return nil
	}
	if segment.end == segment.first {
		// The segment was begun and never written. The next one gets its name.
		return os.Remove(segment.path)
	}
	file, err := os.OpenFile(segment.path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	if err := file.Truncate(segment.size); err != nil {
		return errors.Join(err, file.Close())
	}
	f.appendTo(segment, file)
	return nil
}
