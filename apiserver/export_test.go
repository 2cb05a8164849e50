package apiserver

import "time"

// SetAfter makes requests wait by another clock. Call it before the first request.
func (h *Handler) SetAfter(after func(time.Duration) <-chan time.Time) {
	for _, c := range h.clusters {
		c.after = after
	}
}
