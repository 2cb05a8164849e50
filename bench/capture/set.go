package capture

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"os"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/kuberewind/kuberewind/bench/data"
)

// set is what was captured. Its files are of its resources, each in the order in which they were served.
type set struct {
	resources []data.Resource
	first     []data.Event
	files     []string
	events    int
}

func (s *set) Resources() []data.Resource { return s.resources }

func (s *set) Len() (live, events int) { return len(s.first), s.events }

func (s *set) First() iter.Seq[data.Event] {
	return func(yield func(data.Event) bool) {
		for _, e := range s.first {
			if !yield(e) {
				return
			}
		}
	}
}

// Events merges the files by resource version.
func (s *set) Events() iter.Seq2[data.Event, error] {
	return func(yield func(data.Event, error) bool) {
		var all []*cursor
		defer func() {
			for _, t := range all {
				_ = t.file.Close() // it was read only
			}
		}()
		for i, name := range s.files {
			file, err := os.Open(name)
			if err != nil {
				yield(data.Event{}, err)
				return
			}
			t := &cursor{resource: i, file: file, lines: bufio.NewReaderSize(file, 1<<18)}
			all = append(all, t)
			if err := t.advance(); err != nil {
				yield(data.Event{}, err)
				return
			}
		}
		var last time.Time
		for {
			next := earliest(all)
			if next == nil {
				return
			}
			e := next.event
			// The watches of two resources may serve events in another order than etcd has them.
			if e.At.Before(last) {
				e.At = last
			}
			last = e.At
			if !yield(e, nil) {
				return
			}
			if err := next.advance(); err != nil {
				yield(data.Event{}, err)
				return
			}
		}
	}
}

// cursor is the position up to which a file was read.
type cursor struct {
	resource int
	file     *os.File
	lines    *bufio.Reader
	event    data.Event // the next one
	ended    bool
}

// earliest is nil when all have ended.
func earliest(all []*cursor) (found *cursor) {
	for _, t := range all {
		if !t.ended && (found == nil || t.event.RV < found.event.RV) {
			found = t
		}
	}
	return found
}

func (t *cursor) advance() error {
	stamp, err := t.lines.ReadBytes('\n')
	if errors.Is(err, io.EOF) && len(stamp) == 0 {
		t.ended = true
		return nil
	}
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(string(bytes.TrimSpace(stamp)), 10, 64)
	if err != nil {
		return err
	}
	text, err := t.lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var sent struct {
		Type   watch.EventType
		Object json.RawMessage
	}
	if err := json.Unmarshal(text, &sent); err != nil {
		return err
	}
	t.event, err = event(t.resource, sent.Type, sent.Object, time.Unix(0, at).UTC())
	return err
}
