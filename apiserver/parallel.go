package apiserver

import (
	"context"
	"io"
	"iter"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
)

// An itemWriter appends the text of one object to a buffer.
type itemWriter func([]byte, *state.Entry) ([]byte, error)

// chunkLength is how many objects one goroutine takes at once.
const chunkLength = 64

// A chunk is a part of a list.
type chunk struct {
	entries []*state.Entry
	text    []byte // with a comma before each item except the first
	err     error
	done    chan struct{} // closed when text or err is set
}

// writeParallel writes a list of at least one object whose items are slow to make. Several goroutines make the items, each
// with its own itemWriter.
func writeParallel(ctx context.Context, w io.Writer, begin []byte, entries iter.Seq[*state.Entry], items func() itemWriter) error {
	ctx, stop := context.WithCancel(ctx)
	workers := runtime.GOMAXPROCS(0)
	work, ordered := make(chan *chunk), make(chan *chunk, 2*workers)
	var group errgroup.Group
	for range workers {
		item := items()
		group.Go(func() error {
			for c := range work {
				c.make(item)
			}
			return nil
		})
	}
	group.Go(func() error {
		defer close(work)
		defer close(ordered)
		for c := range chunks(entries) {
			select {
			case ordered <- c:
			case <-ctx.Done():
				return nil
			}
			work <- c
		}
		return nil
	})
	err := writeChunks(w, begin, ordered)
	stop()
	for range ordered { // Drain the channel; the chunks need not be done.
	}
	_ = group.Wait() // No goroutine returns an error.
	return err
}

func chunks(entries iter.Seq[*state.Entry]) iter.Seq[*chunk] {
	return func(yield func(*chunk) bool) {
		next := &chunk{done: make(chan struct{})}
		for e := range entries {
			if next.entries = append(next.entries, e); len(next.entries) < chunkLength {
				continue
			}
			if !yield(next) {
				return
			}
			next = &chunk{done: make(chan struct{})}
		}
		if len(next.entries) > 0 {
			yield(next)
		}
	}
}

func (c *chunk) make(item itemWriter) {
	defer close(c.done)
	for i, e := range c.entries {
		if i > 0 {
			c.text = append(c.text, ',')
		}
		if c.text, c.err = item(c.text, e); c.err != nil {
			return
		}
	}
}

func writeChunks(w io.Writer, begin []byte, ordered <-chan *chunk) error {
	between := append(begin, '[')
	for c := range ordered {
		<-c.done
		if c.err != nil {
			return c.err
		}
		for _, text := range [][]byte{between, c.text} {
			if _, err := w.Write(text); err != nil {
				return err
			}
		}
		between = []byte{','}
	}
	_, err := w.Write([]byte("]}\n"))
	return err
}
