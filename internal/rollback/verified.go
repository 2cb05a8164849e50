package rollback

import (
	"time"

	"github.com/kuberewind/kuberewind/internal/times"
)

// verify notes whether a look had an answer for all that was served before, and nothing spoke against it. Nobody waits for longer
// than ten minutes. Most etcds do not remember as much, and some servers never answer.
func (e *etcd) verify(r *Streams, began time.Time, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.streams {
		answered = answered && (c.etcd != e || !c.following.asks() || !c.sampled.waitsLocked())
	}
	if e.unanswered++; answered || e.unanswered >= mostRefused {
		e.verified, e.unanswered = began.Add(-settledAfter), 0
	}
}

// Verified is up to when what was served was found in etcd again, by the clock of the record. It is zero until that is known of
// each etcd. One for which nobody can be asked does not count. A successor looks for what was recorded since.
func (r *Streams) Verified() (until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.streams {
		if !c.following.asks() || c.etcd.last.of == nil && !c.sampled.waitsLocked() {
			continue
		}
		if c.etcd.verified.IsZero() {
			return time.Time{}
		}
		if until.IsZero() {
			until = c.etcd.verified
		}
		until = times.Earlier(until, c.etcd.verified)
	}
	return until
}

// waitsLocked reports whether some of the samples wait for an answer.
func (s *sampled) waitsLocked() bool { return len(s.due.kept)+len(s.paused.kept) > 0 }
