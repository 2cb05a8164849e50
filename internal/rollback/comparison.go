package rollback

import (
	"context"
	"fmt"
	"time"
)

// confirmAfter is how long what a watch is about to say may take: several deletes can share a revision.
const confirmAfter = time.Second

// evidence is what proves that a history is no more; proof is empty if nothing does.
type evidence struct {
	proof      string
	undone     servedVersion // what was served and is not in etcd
	at         uint64        // a revision of the old history that is in no other
	servedHere bool          // the same was served to this process
	// before is when that was, by the clock of the record; zero if that is not known.
	before time.Time
	// history is the number of that, among those of the stream.
	history int
}

// comparison is one of a stream with etcd.
type comparison struct {
	stream   *Stream
	position uint64 // the stream's, whatever it is on record
}

// verify compares the newest living object of the stream with etcd, at the stream's position, and acts upon what that proves.
func verify(ctx context.Context, c *Stream, position uint64) error {
	e, err := comparison{stream: c, position: position}.run(ctx)
	if e.proof == "" || err != nil {
		return err
	}
	return c.rollBack(ctx, e)
}

// make asks etcd. What a watch is about to tell is no proof: a difference counts if it is the same after confirmAfter.
func (p comparison) run(ctx context.Context) (evidence, error) {
	var mismatched servedVersion
	for {
		e := p.expected()
		v := e.undone
		result, err := p.stream.ask.look(ctx, v, e.at)
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

// expected is the newest living object, the revision at which it was certainly the newest version, and the number of the
// history.
func (p comparison) expected() evidence {
	p.stream.all.mu.Lock()
	defer p.stream.all.mu.Unlock()
	e := evidence{undone: p.stream.living.newest(), history: p.stream.history.number}
	if e.at = max(p.stream.progress.position, e.undone.revision); e.at == 0 {
		e.at = p.position
	}
	return e
}

// ahead is the evidence if etcd has not come to what was expected.
func (p comparison) futureEvidence(e evidence) evidence {
	p.stream.all.mu.Lock()
	defer p.stream.all.mu.Unlock()
	e.proof = fmt.Sprintf("%s was recorded up to resource version %d, which etcd has not come to", p.stream.ask.name, e.at)
	e.servedHere, e.before = p.stream.progress.servedHere(e.at), p.stream.all.recordTimeIfKnown(p.stream.progress.movedTo(e.at))
	return e
}

// other is the evidence if etcd has something else than what was expected.
func (p comparison) mismatchEvidence(e evidence) evidence {
	p.stream.all.mu.Lock()
	defer p.stream.all.mu.Unlock()
	v := e.undone
	e.proof = fmt.Sprintf("%s %s/%s was recorded with resource version %d, and was something else in etcd at %d", p.stream.ask.name, v.namespace, v.name, v.revision, e.at)
	e.at, e.servedHere, e.before = v.revision, p.stream.progress.servedHere(v.revision), p.stream.all.recordTimeIfKnown(v.at)
	return e
}

// further asks whether etcd has come to a position beyond that of the record: that of a spool.
func (p comparison) checkPosition(ctx context.Context, e evidence) (evidence, error) {
	if p.position <= e.at {
		return evidence{}, nil
	}
	result, err := p.stream.ask.look(ctx, servedVersion{}, p.position)
	if result != future {
		return evidence{}, err
	}
	proof := fmt.Sprintf("%s was followed up to resource version %d, which etcd has not come to", p.stream.ask.name, p.position)
	return evidence{proof: proof, at: p.position, history: e.history}, err
}
