// Package jsonlines appends values to a file of the server, one line of JSON each.
//
// # What it guarantees
//
//   - Each line is whole, also if other processes append to the file.
//   - No line is lost while the server runs. If a line cannot be written, File keeps it, and Ready fails until a retry succeeds.
//   - Only its owner can read a new file (mode 0600).
//
// # Goroutines
//
// None. A File is safe for concurrent use.
package jsonlines

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// File is an open file of JSON lines.
type File struct {
	out  io.WriteCloser
	what string // what the file is, for errors
	name string

	mu   sync.Mutex // protects what follows
	left []byte     // lines, or the rest of one, still to be written
}

// Open opens a file for appending. The name what describes the file in messages, such as "audit log".
func Open(what, name string) (*File, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the %s: %w", what, err)
	}
	return &File{out: file, what: what, name: name}, nil
}

// Ready writes the remaining lines, and fails if it cannot. If a caller calls it before each Append, at most one line
// waits.
func (f *File) Ready() error { return f.write(nil) }

// Append writes a value as a line, after the remaining earlier lines.
func (f *File) Append(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return f.write(append(line, '\n'))
}

// Close writes the remaining lines, and closes the file.
func (f *File) Close() error { return errors.Join(f.write(nil), f.out.Close()) }

func (f *File) write(line []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left = append(f.left, line...)
	if len(f.left) == 0 {
		return nil
	}
	n, err := f.out.Write(f.left)
	f.left = f.left[n:]
	if err != nil {
		return fmt.Errorf("the %s %s cannot be written: %w", f.what, f.name, err)
	}
	f.left = nil
	return nil
}
