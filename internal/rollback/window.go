package rollback

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// window says how far back the API server's watch cache of a stream can be watched.
type window struct {
	openedFrom     uint64    // the resource version from which the present watch was opened
	watchableFrom  uint64    // a revision from which the cache could certainly be watched, 0 if none is known
	watchableSince time.Time // when that watch began
	refused        bool      // the last watch was refused as too old: this is a new cache
	everRefused    bool      // some watch was refused: the cache may have begun long before watchableSince
	lastAccepted   time.Time // when the last accepted watch was certainly still open
	begunAfter     time.Time // the present cache began after that; zero if it is not known
	recent         []uint64  // the newest revisions that were served, in order
}

// opened notes that a watch was opened.
func (w *window) opened(from uint64) { w.openedFrom = from }

// closed counts a watch as accepted if it has lasted acceptedAfter. As long as no watch is refused, the cache is the
// same: a new cache would not have the history from before its begin. A cut connection may stay unnoticed for most
// of a minute. So an accepted watch was certainly open when the stream was last served something.
func (w *window) closed(since, served time.Time, err error) {
	expired := apierrors.IsResourceExpired(err) || apierrors.IsGone(err) // a refusal, however long it took
	if !expired {
		w.settle(since)
	}
	accepted := !expired && w.openedFrom != 0 && time.Since(since) >= acceptedAfter
	w.openedFrom = 0
	switch {
	case accepted:
		if w.lastAccepted = since; served.After(since) {
			w.lastAccepted = served
		}
	case expired:
		w.refused, w.everRefused = true, true
		if time.Since(w.lastAccepted) < minWindow {
			w.begunAfter = w.lastAccepted // The cache of that time could still be watched from the end of that watch.
		}
	}
}

// settle notes from where the cache can be watched, if the present watch counts as accepted. since is when it was opened.
func (w *window) settle(since time.Time) {
	if w.openedFrom != 0 && time.Since(since) >= acceptedAfter && (w.watchableFrom == 0 || w.refused) {
		w.watchableFrom, w.watchableSince, w.refused = w.openedFrom, since, false
	}
}

// served notes a revision that was served.
func (w *window) served(revision uint64) {
	if w.recent = append(w.recent, revision); len(w.recent) > minWindowEvents {
		w.recent = slices.Delete(w.recent, 0, 1)
	}
}
