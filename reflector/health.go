package reflector

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kuberewind/kuberewind/delta"
)

const (
	// unreachableAfter is how long a stream may fail before it is said to be
	// interrupted: what is shorter is an ordinary hiccup.
	unreachableAfter = 30 * time.Second
	// refusedAfter is the same for a stream that is recorded and answered 401 or
	// 403: an API server that starts does so until it has read who may do what.
	refusedAfter = 10 * time.Second
	// poisonLimit is how many times the same place may fail in the same way
	// before a list is tried to get past it.
	poisonLimit = 5
	// poisonMemory is how far apart failures of one series may be. A place that
	// cannot be served fails whenever it is watched, one that failed because
	// the server was ill does not.
	poisonMemory = 10 * time.Minute
)

// health is what the reflector remembers of failures. A watch that works or a
// list that was completed resets it.
type health struct {
	failingSince time.Time   // zero: nothing has failed
	refusedSince time.Time   // zero: the last failure was not 401 or 403
	interrupted  delta.Cause // the cause that the store was told, "" if none
	freshTries   int         // new connections tried after a 410
	recovered    int         // revisions looked at to recover after a 410
	recoveries   int         // attempts to recover that failed for no lasting reason
	unproven     bool        // a list was completed, no watch has worked since
	poison       poison
}

// poison counts identical failures at one place.
type poison struct {
	at, what string
	count    int
	last     time.Time
}

// failed notes an error after which a pause is due, tells the store if the
// stream is interrupted by it, and returns it.
func (r *Reflector) failed(err error) error {
	kind := kindOf(err)
	if err == nil || kind == storeFailure {
		return err
	}
	if r.health.failingSince.IsZero() {
		r.health.failingSince = r.clock.Now()
	}
	switch {
	case !isRefusal(err):
		r.health.refusedSince = time.Time{}
	case r.health.refusedSince.IsZero():
		r.health.refusedSince = r.clock.Now()
	}
	if kind == poisonFailure {
		r.notePoison(err)
	}
	if cause := r.interruption(kind, err); cause != "" {
		return errors.Join(err, r.interrupt(cause, err))
	}
	return err
}

// interruption is the cause for which the stream cannot go on, "" while the
// failure may pass by itself.
func (r *Reflector) interruption(kind failureKind, err error) delta.Cause {
	switch {
	case isRefusal(err) && r.recorded() && r.clock.Since(r.health.refusedSince) < refusedAfter:
		return ""
	case kind == deniedFailure:
		return deniedCause(err)
	case kind == unusableFailure, kind == poisonFailure && r.health.poison.count > poisonLimit:
		return delta.CauseUndecodable
	case kind == poisonFailure && r.health.poison.count > 1:
		return "" // The server answers. The next tries tell whether the place can be read.
	case r.clock.Since(r.health.failingSince) >= unreachableAfter:
		return delta.CauseUnreachable
	default:
		return ""
	}
}

// interrupt tells the store once. That a server which refused cannot be reached
// any more is no news.
func (r *Reflector) interrupt(cause delta.Cause, err error) error {
	known := r.health.interrupted
	if known == cause || known != "" && cause == delta.CauseUnreachable {
		return nil
	}
	if err := r.out.interrupted(cause, err.Error()); err != nil {
		return err
	}
	r.health.interrupted = cause
	return nil
}

// notePoison counts a failure, and plans a list when there have been enough.
// The list is tentative: if the server cannot give it either, the fault is the
// server's and not the place's, and the history must not be given up.
func (r *Reflector) notePoison(err error) {
	p, what, now := &r.health.poison, whatFailed(err), r.clock.Now()
	if p.at != r.at.Newest || p.what != what || now.Sub(p.last) > poisonMemory {
		*p = poison{at: r.at.Newest, what: what}
	}
	p.count++
	p.last = now
	if p.count == poisonLimit {
		r.options.Hooks.Undecodable(1)
	}
	if p.count >= poisonLimit {
		r.pending = &relist{
			cause:     delta.CauseUndecodable,
			detail:    fmt.Sprintf("failed %d times in the same way: %v", p.count, err),
			tentative: true,
		}
	}
}

// whatFailed is what identical failures have in common: a message may carry
// times and request identifiers, a status code and reason do not.
func whatFailed(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return fmt.Sprint(status.Status().Code, status.Status().Reason)
	}
	return "not understood"
}

// nowWorks is called when a watch has shown that it works: whatever had failed
// before, nothing was lost by it.
func (r *Reflector) nowWorks(s *stream) error {
	if s.works {
		return nil
	}
	if r.health.interrupted != "" {
		if err := r.out.resumed(); err != nil {
			return err
		}
	}
	// The poison counter stands: it is about one place, and a stream that fails
	// there may well work for a while.
	r.health = health{poison: r.health.poison}
	s.works = true
	return nil
}
