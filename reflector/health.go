package reflector

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/kuberewind/kuberewind/delta"
)

const (
	// unreachableAfter is how long a stream may fail before the store learns that it is interrupted. A shorter failure
	// is an ordinary hiccup.
	unreachableAfter = 30 * time.Second
	// refusedAfter is the same for a recorded stream that gets 401 or 403. An API server that starts answers so until
	// it has read its authorization rules.
	refusedAfter = 10 * time.Second
	// poisonLimit is how many times the same place may fail in the same way before the reflector lists to get past it.
	poisonLimit = 5
	// poisonMemory is how far apart failures of one series may be. If the server cannot serve a place, every watch
	// fails there. If the server was only ill, later watches do not fail.
	poisonMemory = 10 * time.Minute
)

// health notifies the store when the stream cannot go on, and when it does again. It counts the failures since a watch
// has worked or a list was completed.
type health struct {
	out         outlet
	place       *place
	clock       clock.PassiveClock
	undecodable func(places int) // Hooks.Undecodable

	interrupted  delta.Cause // the cause that the store knows, "" if none
	failingSince time.Time   // zero: nothing has failed
	refusedSince time.Time   // zero: the last failure was not 401 or 403
	unproven     bool        // a list was completed, no watch has worked since
	poison       poison
}

// poison counts identical failures at one place.
type poison struct {
	at, what string
	count    int
	last     time.Time
}

// failed notes an error after which a pause is due. If the error interrupts the stream, failed notifies the store. It
// returns the error, and the list that may lead past it, nil if none is due.
func (h *health) failed(err error) (*relist, error) {
	kind := kindOf(err)
	if err == nil || kind == storeFailure {
		return nil, err
	}
	if h.failingSince.IsZero() {
		h.failingSince = h.clock.Now()
	}
	switch {
	case !isRefusal(err):
		h.refusedSince = time.Time{}
	case h.refusedSince.IsZero():
		h.refusedSince = h.clock.Now()
	}
	var due *relist
	if kind == poisonFailure {
		due = h.notePoison(err)
	}
	if cause := h.interruption(kind, err); cause != "" {
		return due, errors.Join(err, h.interrupt(cause, err))
	}
	return due, err
}

// interruption returns the cause for which the stream cannot go on, "" while the failure may still be temporary.
func (h *health) interruption(kind failureKind, err error) delta.Cause {
	switch {
	case isRefusal(err) && h.place.recorded() && h.clock.Since(h.refusedSince) < refusedAfter:
		return ""
	case kind == deniedFailure:
		return deniedCause(err)
	case kind == unusableFailure, kind == poisonFailure && h.poison.count > poisonLimit:
		return delta.CauseUndecodable
	case kind == poisonFailure && h.poison.count > 1:
		return "" // The server answers. The next tries show whether the place can be read.
	case h.clock.Since(h.failingSince) >= unreachableAfter:
		return delta.CauseUnreachable
	default:
		return ""
	}
}

// interrupt notifies the store once. If the server refused before and is now unreachable, the store already knows
// enough.
func (h *health) interrupt(cause delta.Cause, err error) error {
	known := h.interrupted
	if known == cause || known != "" && cause == delta.CauseUnreachable {
		return nil
	}
	if err := h.out.interrupted(cause, err.Error()); err != nil {
		return err
	}
	h.interrupted = cause
	return nil
}

// notePoison counts a failure, and returns a list when there have been enough. The list is tentative: if the server
// cannot give it either, the fault is the server's and not the place's, and the stream keeps its history.
func (h *health) notePoison(err error) *relist {
	p, what, now := &h.poison, whatFailed(err), h.clock.Now()
	if p.at != h.place.at.Newest || p.what != what || now.Sub(p.last) > poisonMemory {
		*p = poison{at: h.place.at.Newest, what: what}
	}
	p.count++
	p.last = now
	if p.count == poisonLimit {
		h.undecodable(1)
	}
	if p.count < poisonLimit {
		return nil
	}
	return &relist{
		cause:     delta.CauseUndecodable,
		detail:    fmt.Sprintf("failed %d times in the same way: %v", p.count, err),
		tentative: true,
	}
}

// whatFailed returns the common part of identical failures. A message may have times and request identifiers; a status
// code and reason do not.
func whatFailed(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Sprint(status.Status().Code, status.Status().Reason)
	}
	return "not understood"
}

// goesOn notifies the store that the history goes on.
func (h *health) goesOn() error {
	if h.interrupted == "" {
		return nil
	}
	if err := h.out.resumed(); err != nil {
		return err
	}
	h.interrupted = ""
	return nil
}

// works notes that a watch works, so earlier failures have lost nothing. The poison counter keeps its value: it counts
// failures at one place, and a stream that fails there may work for a while.
func (h *health) works() error {
	if err := h.goesOn(); err != nil {
		return err
	}
	h.failingSince, h.refusedSince, h.unproven = time.Time{}, time.Time{}, false
	return nil
}

// listed notes that a list was completed. The list itself has notified the store.
func (h *health) listed() {
	h.interrupted, h.failingSince, h.refusedSince, h.unproven = "", time.Time{}, time.Time{}, true
	h.poison = poison{}
}
