// Package jsonlines appends values to a file of the server, one line of JSON each.
//
// # What it guarantees
//
//   - Each line is whole, also if other processes append to the file.
//   - No line is lost while the server runs. A line that cannot be written is kept, and Ready fails until it could be.
//   - A new file is its owner's alone (mode 0600).
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
	what string // it is, for errors
	name string

	mu   sync.Mutex // protects what follows
	left []byte     // lines, or the rest of one, that could not be written yet
}

// Open opens a file to append to. What names the file in messages, such as "audit log".
func Open(what, name string) (*File, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the %s: %w", what, err)
	}
	return &File{out: file, what: what, name: name}, nil
}

// Ready writes what is left, and fails if it cannot. A caller that asks before each Append bounds the loss.
func (f *File) Ready() error { return f.write(nil) }

// Append writes a value as a line, after what is left of the lines before it.
func (f *File) Append(value any) error {
	line, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return f.write(append(line, '\n'))
}

// Close writes what is left, and closes the file.
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
