package auditlog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// Log is an open audit log.
type Log struct {
	out  io.WriteCloser
	name string

	mu   sync.Mutex // protects what follows
	left []byte     // lines, or the rest of one, that could not be written yet
}

// Open opens a file to append to. A new file is its owner's alone.
func Open(name string) (*Log, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the audit log: %w", err)
	}
	return &Log{out: file, name: name}, nil
}

// Close writes what is left, and closes the file.
func (l *Log) Close() error { return errors.Join(l.write(nil), l.out.Close()) }

// write appends a line, after what is left of those before it.
func (l *Log) write(line []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = append(l.left, line...)
	if len(l.left) == 0 {
		return nil
	}
	n, err := l.out.Write(l.left)
	l.left = l.left[n:]
	if err != nil {
		return fmt.Errorf("the audit log %s cannot be written: %w", l.name, err)
	}
	l.left = nil
	return nil
}
