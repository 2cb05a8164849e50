package data

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"
	"k8s.io/apimachinery/pkg/watch"
)

// A recording is a file of JSON lines, compressed with zstd. A header comes first, then two lines for each event: what is known
// of it, and its object as the API server gave it. The objects of the beginning come first.

// header is the first line.
type header struct {
	Format       string // recordingFormat
	Server       string // release of the API server
	Resources    []Resource
	Live, Events int
}

const recordingFormat = "kuberewind bench recording 1"

// line is what is known of an event.
type line struct {
	R  int             `json:"r"`
	T  watch.EventType `json:"t"`
	NS string          `json:"ns,omitempty"`
	N  string          `json:"n"`
	U  string          `json:"u"`
	RV uint64          `json:"rv"`
	At time.Time       `json:"at"`
}

type recording struct {
	path  string
	head  header
	first []Event
}

// Open gives the Set that a recording holds. The file has to stay where it is.
func Open(path string) (Set, error) {
	r := &recording{path: path}
	reader, err := r.read()
	if err != nil {
		return nil, err
	}
	defer reader.close()
	for range r.head.Live {
		e, err := reader.next()
		if err != nil {
			return nil, reader.wrap(err)
		}
		r.first = append(r.first, e)
	}
	return r, nil
}

func (r *recording) Resources() []Resource { return r.head.Resources }

func (r *recording) Len() (live, events int) { return r.head.Live, r.head.Events }

func (r *recording) First() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for _, e := range r.first {
			if !yield(e) {
				return
			}
		}
	}
}

func (r *recording) Events() iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		reader, err := r.read()
		if err != nil {
			yield(Event{}, err)
			return
		}
		defer reader.close()
		for i := range r.head.Live + r.head.Events {
			e, err := reader.next()
			if err != nil {
				yield(Event{}, reader.wrap(err))
				return
			}
			if i >= r.head.Live && !yield(e, nil) {
				return
			}
		}
	}
}

// A recordingReader reads a file from its beginning.
type recordingReader struct {
	file   *os.File
	zstd   *zstd.Decoder
	lines  *bufio.Reader
	events int
}

// read opens the file and reads its header.
func (r *recording) read() (*recordingReader, error) {
	file, err := os.Open(r.path)
	if err != nil {
		return nil, fmt.Errorf("%w: make bench-recording makes one", err)
	}
	reader := &recordingReader{file: file}
	if reader.zstd, err = zstd.NewReader(file, zstd.WithDecoderConcurrency(1)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	reader.lines = bufio.NewReaderSize(reader.zstd, 1<<20)
	text, err := reader.lines.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, &r.head)
	}
	if err == nil && r.head.Format != recordingFormat {
		err = fmt.Errorf("its format is %q, and not %q", r.head.Format, recordingFormat)
	}
	if err != nil {
		err = reader.wrap(err)
		reader.close()
		return nil, err
	}
	return reader, nil
}

func (r *recordingReader) wrap(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("%s is no whole recording (event %d): %w", r.file.Name(), r.events, err)
}

func (r *recordingReader) close() {
	r.zstd.Close()
	_ = r.file.Close() // it was read only
}

func (r *recordingReader) next() (e Event, err error) {
	text, err := r.lines.ReadBytes('\n')
	if err != nil {
		return e, err
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return e, err
	}
	object, err := r.lines.ReadBytes('\n')
	r.events++
	return Event{Resource: l.R, Type: l.T, Namespace: l.NS, Name: l.N, UID: l.U, RV: l.RV, At: l.At, Object: bytes.TrimSuffix(object, []byte("\n"))}, err
}

// Write writes a Set as a recording, whose objects have to be without line breaks, as an API server's are. server is its release.
func Write(path string, set Set, server string) (err error) {
	live, events := set.Len()
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, file.Close()); err != nil {
			err = errors.Join(fmt.Errorf("write the recording %s: %w", path, err), os.Remove(path))
		}
	}()
	packed, err := zstd.NewWriter(file)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(packed, 1<<20)
	encoder := json.NewEncoder(out)
	if err := encoder.Encode(header{recordingFormat, server, set.Resources(), live, events}); err != nil {
		return err
	}
	put := func(e Event) error {
		if err := encoder.Encode(line{e.Resource, e.Type, e.Namespace, e.Name, e.UID, e.RV, e.At}); err != nil {
			return err
		}
		_, err := out.Write(append(bytes.Clone(e.Object), '\n'))
		return err
	}
	for e := range set.First() {
		if err := put(e); err != nil {
			return err
		}
	}
	for e, err := range set.Events() {
		if err == nil {
			err = put(e)
		}
		if err != nil {
			return err
		}
	}
	return errors.Join(out.Flush(), packed.Close())
}
