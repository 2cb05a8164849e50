package rollback

import (
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// window is how far back the watch cache of a stream can be watched.
type window struct {
	openedFrom     uint64    // where the present watch was opened
	watchableFrom  uint64    // from where the cache could be watched for certain, 0 where that is not known
	watchableSince time.Time // when that was
	refused        bool      // the last watch was refused: the cache has begun anew
	everRefused    bool      // one was refused at some time: the cache may have begun long before it could be watched for certain
	lastAccepted   time.Time // when the last watch was that was accepted, for all that is known
	begunAfter     time.Time // the present cache was begun after that; zero where that is not known
	recent         []uint64  // the newest revisions that were served, in order
}

func (w *window) opened(from uint64) { w.openedFrom = from }

// closed takes a watch that has lasted for one that was accepted. As long as none is refused, it is one and the same cache: another would
// not have the history before its own beginning. A connection that is cut may not show that for most of a minute: it had not ended when something
// was served last.
func (w *window) closed(since, served time.Time, err error) {
	expired := apierrors.IsResourceExpired(err) || apierrors.IsGone(err) // however long that took
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
			w.begunAfter = w.lastAccepted // The cache that was there then could be watched from where it was left.
		}
	}
}

func (w *window) settle(since time.Time) {
	if w.openedFrom != 0 && time.Since(since) >= acceptedAfter && (w.watchableFrom == 0 || w.refused) {
		w.watchableFrom, w.watchableSince, w.refused = w.openedFrom, since, false
	}
}

func (w *window) served(revision uint64) {
	if w.recent = append(w.recent, revision); len(w.recent) > minWindowEvents {
		w.recent = slices.Delete(w.recent, 0, 1)
	}
}
