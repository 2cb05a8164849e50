package rollback

import (
	"context"
	"fmt"
	"time"
)

// confirmAfter is how long after a mismatch the check is repeated. Several deletes can share a revision, so the
// watch may be about to deliver the difference.
const confirmAfter = time.Second

// comparison compares a stream with etcd.
type comparison struct {
	stream   *Stream
	position uint64 // the position of the stream; it may be further than the one on record
}

// checkNewest compares the newest living object of the stream with etcd, at the stream's position. If that proves a
// rollback, checkNewest acts on it.
func checkNewest(ctx context.Context, c *Stream, position uint64) error {
	e, err := comparison{stream: c, position: position}.run(ctx)
	if e.proof == "" || err != nil {
		return err
	}
	return c.rollBack(ctx, e)
}

// run asks etcd. A difference that the watch is about to deliver is no proof. So a mismatch counts only if it is
// still there after confirmAfter.
func (p comparison) run(ctx context.Context) (evidence, error) {
	var mismatched servedVersion
	for {
		e := p.expected()
		v := e.lostVersion
		result, err := p.stream.ask.look(ctx, v, e.oldRevision)
		if err == nil && result == inconclusive {
			result, err = p.stream.ask.lookNow(ctx, v)
		}
		switch {
		case err != nil:
			return evidence{}, err
		case result == future:
			return p.futureEvidence(e), nil
		case result == mismatch && v.name == "", result == match, result == inconclusive:
			return p.checkPosition(ctx, e)
		case v.name == mismatched.name && v.namespace == mismatched.namespace && v.revision == mismatched.revision:
			return p.mismatchEvidence(e), nil
		}
		mismatched = v
		timer := time.NewTimer(confirmAfter)
		select {
		case <-ctx.Done():
			timer.Stop()
			return evidence{}, ctx.Err()
		case <-timer.C:
		}
	}
}

// expected returns the newest living object, a revision at which that was certainly its newest version, and the
// number of the history.
func (p comparison) expected() evidence {
	p.stream.all.mu.Lock()
	defer p.stream.all.mu.Unlock()
	e := evidence{lostVersion: p.stream.living.newest(), historyNumber: p.stream.history.number}
	if e.oldRevision = max(p.stream.progress.position, e.lostVersion.revision); e.oldRevision == 0 {
		e.oldRevision = p.position
	}
	return e
}

// futureEvidence returns the evidence if etcd has not reached the expected revision.
func (p comparison) futureEvidence(e evidence) evidence {
	p.stream.all.mu.Lock()
	defer p.stream.all.mu.Unlock()
	e.proof = fmt.Sprintf("%s was recorded up to resource version %d, which etcd has not reached", p.stream.ask.name, e.oldRevision)
	e.servedHere, e.servedAt = p.stream.progress.servedHere(e.oldRevision), p.stream.all.recordTimeIfKnown(p.stream.progress.movedTo(e.oldRevision))
	return e
}

// mismatchEvidence returns the evidence if etcd held another version than the expected one.
func (p comparison) mismatchEvidence(e evidence) evidence {
	p.stream.all.mu.Lock()
	defer p.stream.all.mu.Unlock()
	v := e.lostVersion
	e.proof = fmt.Sprintf("%s %s/%s was recorded with resource version %d, but etcd held another version, or none, at %d", p.stream.ask.name, v.namespace, v.name, v.revision, e.oldRevision)
	e.oldRevision, e.servedHere, e.servedAt = v.revision, p.stream.progress.servedHere(v.revision), p.stream.all.recordTimeIfKnown(v.at)
	return e
}

// checkPosition asks whether etcd has reached a position beyond that of the record: the position of a spool.
func (p comparison) checkPosition(ctx context.Context, e evidence) (evidence, error) {
	if p.position <= e.oldRevision {
		return evidence{}, nil
	}
	result, err := p.stream.ask.look(ctx, servedVersion{}, p.position)
	if result != future {
		return evidence{}, err
	}
	proof := fmt.Sprintf("%s was followed up to resource version %d, which etcd has not reached", p.stream.ask.name, p.position)
	return evidence{proof: proof, oldRevision: p.position, historyNumber: e.historyNumber}, err
}
