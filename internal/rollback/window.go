package rollback

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// minWindow is how far back, at least, a watch cache can be watched. API servers keep all events of 75 seconds, and the newest
// minWindowEvents in any case.
const (
	minWindow       = time.Minute
	minWindowEvents = 100
)

// cacheWindow says how far back the API server's watch cache of a stream can be watched.
type cacheWindow struct {
	openedRevision   uint64    // the resource version from which the present watch was opened
	acceptedRevision uint64    // a revision from which the cache could certainly be watched, 0 if none is known
	acceptedAt       time.Time // when the watch from there was opened
	refused          bool      // the last watch was refused as too old: this is a new cache
	everRefused      bool      // some watch was refused: the cache may have begun long before acceptedAt
	lastOpenAt       time.Time // when the last accepted watch was certainly still open
	earliestBeginAt  time.Time // the present cache began then or later; zero if it is not known
	recentRevisions  []uint64  // the newest revisions that were served, in order
}

// noteOpened notes that a watch was opened.
func (w *cacheWindow) noteOpened(revision uint64) { w.openedRevision = revision }

// noteClosed counts a watch as accepted if it has lasted acceptedAfter. As long as no watch is refused, the cache is the
// same: a new cache would not have the history from before its begin. A cut connection may stay unnoticed for most
// of a minute. So an accepted watch was certainly open when the stream was last served something.
func (w *cacheWindow) noteClosed(openedAt, servedAt time.Time, err error) {
	expired := apierrors.IsResourceExpired(err) || apierrors.IsGone(err) // a refusal, however long it took
	if !expired {
		w.noteAccepted(openedAt)
	}
	accepted := !expired && w.openedRevision != 0 && time.Since(openedAt) >= acceptedAfter
	w.openedRevision = 0
	switch {
	case accepted:
		if w.lastOpenAt = openedAt; servedAt.After(openedAt) {
			w.lastOpenAt = servedAt
		}
	case expired:
		w.refused, w.everRefused = true, true
		if time.Since(w.lastOpenAt) < minWindow {
			w.earliestBeginAt = w.lastOpenAt // The cache of that time could still be watched from the end of that watch.
		}
	}
}

// noteAccepted notes from where the cache can be watched, if the present watch counts as accepted. openedAt is when it
// was opened.
func (w *cacheWindow) noteAccepted(openedAt time.Time) {
	if w.openedRevision != 0 && time.Since(openedAt) >= acceptedAfter && (w.acceptedRevision == 0 || w.refused) {
		w.acceptedRevision, w.acceptedAt, w.refused = w.openedRevision, openedAt, false
	}
}

// noteServed notes a revision that was served.
func (w *cacheWindow) noteServed(revision uint64) {
	if w.recentRevisions = append(w.recentRevisions, revision); len(w.recentRevisions) > minWindowEvents {
		w.recentRevisions = slices.Delete(w.recentRevisions, 0, 1)
	}
}
