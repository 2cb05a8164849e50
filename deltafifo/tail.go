package deltafifo

import (
	"errors"
	"fmt"
	"slices"
)

// Vacant tells whether nothing is alive in the stream once everything that is held is committed. Where that would have to be read from disk,
// it says no.
func (f *FIFO) Vacant() bool {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	if err := f.useTails(); err != nil {
		return false
	}
	defer f.releaseTails()
	for _, key := range f.unseen(&replacement{}) {
		if _, alive, err := f.tail(key); alive || err != nil {
			return false
		}
	}
	return true
}

// unseen gives the keys, held or known, that were not on the list; in order, so that equal histories give equal records.
// The held ones are asked for first: what leaves meanwhile is among the known ones.
func (f *FIFO) unseen(r *replacement) []string {
	keys := f.pendingKeys()
	if f.known != nil {
		keys = append(keys, f.known.ListKeys()...)
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return !r.gone(key) })
	slices.Sort(keys)
	return slices.Compact(keys)
}

// tail gives the state of key after all that is held. What is held is looked at first: the consumer changes KnownObjects
// before it lets entries leave, so that what is no longer held is known.
func (f *FIFO) tail(key string) (any, bool, error) {
	obj, alive, pending := f.pending(key)
	if pending || f.known == nil {
		return obj, alive, nil
	}
	return f.getKnown(key)
}

func (f *FIFO) getKnown(key string) (any, bool, error) {
	obj, exists, err := f.known.GetByKey(key)
	if err != nil {
		return nil, false, fmt.Errorf("look up known object %s: %w", key, err)
	}
	return obj, exists, nil
}

// pending gives the last held state of key, as tailLocked does.
func (f *FIFO) pending(key string) (obj any, alive, pending bool) {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	return f.stream.tailLocked(key)
}

// pendingKeys gives the keys of which something is held.
func (f *FIFO) pendingKeys() []string {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	keys := make([]string, 0, len(f.stream.tails))
	for key := range f.stream.tails {
		keys = append(keys, key)
	}
	return keys
}

// ErrOnDisk says that a part of the stream is on disk only, so that nothing can be compared with it.
var ErrOnDisk = errors.New("deltafifo: a part of the stream is on disk")

func (f *FIFO) useTails() error {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	if f.stream.behind > 0 {
		return ErrOnDisk
	}
	f.stream.useTailsLocked()
	return nil
}

func (f *FIFO) releaseTails() {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	f.stream.releaseTailsLocked()
}
