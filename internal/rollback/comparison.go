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
	proof  string
	undone witness // what was served and is not in etcd
	at     uint64  // a revision of the old history that is in no other
	served bool    // the same was served to this process
	// before is when that was, by the clock of the record; zero if that is not known.
	before time.Time
	// history is the number of that, among those of the stream.
	history int
}

// comparison is one of a stream with etcd.
type comparison struct {
	of       *Stream
	position uint64 // the stream's, whatever it is on record
}

// verify compares the newest living object of the stream with etcd, at the stream's position, and acts upon what that proves.
func verify(ctx context.Context, c *Stream, position uint64) error {
	e, err := comparison{of: c, position: position}.make(ctx)
	if e.proof == "" || err != nil {
		return err
	}
	return c.found(ctx, e)
}

// make asks etcd. What a watch is about to tell is no proof: a difference counts if it is the same after confirmAfter.
func (p comparison) make(ctx context.Context) (evidence, error) {
	var doubted witness
	for {
		e := p.expected()
		w := e.undone
		what, err := p.of.ask.look(ctx, w, e.at)
		if err == nil && what == unknown {
			what, err = p.of.ask.lookNow(ctx, w)
		}
		switch {
		case err != nil:
			return evidence{}, err
		case what == ahead:
			return p.ahead(e), nil
		case what == other && w.name == "", what == same, what == unknown:
			return p.further(ctx, e)
		case w.name == doubted.name && w.namespace == doubted.namespace && w.revision == doubted.revision:
			return p.other(e), nil
		}
		doubted = w
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
	p.of.all.mu.Lock()
	defer p.of.all.mu.Unlock()
	e := evidence{undone: p.of.living.newest(), history: p.of.history.number}
	if e.at = max(p.of.place.position, e.undone.revision); e.at == 0 {
		e.at = p.position
	}
	return e
}

// ahead is the evidence if etcd has not come to what was expected.
func (p comparison) ahead(e evidence) evidence {
	p.of.all.mu.Lock()
	defer p.of.all.mu.Unlock()
	e.proof = fmt.Sprintf("%s was recorded up to resource version %d, which etcd has not come to", p.of.ask.name, e.at)
	e.served, e.before = p.of.place.servedHere(e.at), p.of.all.recordedIf(p.of.place.movedTo(e.at))
	return e
}

// other is the evidence if etcd has something else than what was expected.
func (p comparison) other(e evidence) evidence {
	p.of.all.mu.Lock()
	defer p.of.all.mu.Unlock()
	w := e.undone
	e.proof = fmt.Sprintf("%s %s/%s was recorded with resource version %d, and was something else in etcd at %d", p.of.ask.name, w.namespace, w.name, w.revision, e.at)
	e.at, e.served, e.before = w.revision, p.of.place.servedHere(w.revision), p.of.all.recordedIf(w.at)
	return e
}

// further asks whether etcd has come to a position beyond that of the record: that of a spool.
func (p comparison) further(ctx context.Context, e evidence) (evidence, error) {
	if p.position <= e.at {
		return evidence{}, nil
	}
	what, err := p.of.ask.look(ctx, witness{}, p.position)
	if what != ahead {
		return evidence{}, err
	}
	proof := fmt.Sprintf("%s was followed up to resource version %d, which etcd has not come to", p.of.ask.name, p.position)
	return evidence{proof: proof, at: p.position, history: e.history}, err
}
