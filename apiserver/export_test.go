package apiserver

import "time"

// SetAfter has requests wait by another clock. It comes before the first request.
func (h *Handler) SetAfter(after func(time.Duration) <-chan time.Time) {
	for _, c := range h.clusters {
		c.after = after
	}
}
