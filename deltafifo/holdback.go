package deltafifo

import "time"

// holdBack sums up how long a stream had to wait for room. Its server may have forgotten the events of that time.
type holdBack struct {
	total time.Duration
	until time.Time
}

// holdBackMemory is how long HeldBack reports a wait. API servers keep five minutes of history by default. After that
// time, the stream has read the events that waited, or has found that they are gone.
const holdBackMemory = 5 * time.Minute

func (h *holdBack) add(from, until time.Time) {
	if from.Sub(h.until) > holdBackMemory {
		h.total = 0
	}
	h.total += until.Sub(from)
	h.until = until
}

// recent returns the sum of the waits, if the last one ended within holdBackMemory.
func (h *holdBack) recent() time.Duration {
	if time.Since(h.until) > holdBackMemory {
		return 0
	}
	return h.total
}

// HeldBack returns how long, in total, calls that enqueue have recently waited for room.
func (f *FIFO) HeldBack() time.Duration {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	return f.feeder.held.recent()
}
