package deltafifo

import "time"

// holdBack sums up for how long a stream had to wait for room. Its server may have forgotten what came meanwhile.
type holdBack struct {
	total time.Duration
	until time.Time
}

// holdBackMemory is for how long HeldBack reports a wait. API servers keep five minutes of history by default. So what was
// held back longer ago has been read since, or was found to be gone.
const holdBackMemory = 5 * time.Minute

func (h *holdBack) add(from, until time.Time) {
	if from.Sub(h.until) > holdBackMemory {
		h.total = 0
	}
	h.total += until.Sub(from)
	h.until = until
}

// recent is the sum of the waits that are not longer ago than holdBackMemory.
func (h *holdBack) recent() time.Duration {
	if time.Since(h.until) > holdBackMemory {
		return 0
	}
	return h.total
}

// HeldBack is for how long, in all, calls that enqueue have waited for room lately.
func (f *FIFO) HeldBack() time.Duration {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	return f.feeder.held.recent()
}
