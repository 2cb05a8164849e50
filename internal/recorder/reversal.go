package recorder

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// confirmAfter is how long what a watch is about to say may take: several deletes can share a revision.
	confirmAfter = time.Second
	// askedBeside bounds how many streams of an etcd are asked whether another is in it. Some of their resources may be gone,
	// but not all at once.
	askedBeside = 5
	// finderPatience is for how long a stream waits for an etcd with a reversal for whose streams the server does not answer.
	// Until then the stream is not taken to be in that etcd.
	finderPatience = 10 * time.Minute
	// toldAtOnce bounds how many streams find out at once whether they are in an etcd, by three reads each.
	toldAtOnce = 20
)

// Reversed implements reflector.History.
func (c *claims) Reversed(ctx context.Context, resourceVersion string) (string, error) {
	if err := c.all.identity.check(ctx); err != nil {
		return "", err
	}
	position, err := strconv.ParseUint(cmp.Or(resourceVersion, c.reachedTo()), 10, 64)
	if err != nil {
		return "", nil //nolint:nilerr // nothing is recorded, or opaque versions cannot be compared
	}
	// Who has told it may have found nobody who could hear it, between two runs.
	if proof := c.leftFor(); proof != "" {
		return proof, nil
	}
	if proof, err := c.learnOfRecord(ctx); proof != "" || err != nil {
		return proof, err
	}
	if proof, err := c.learn(ctx); proof != "" || err != nil {
		return proof, err
	}
	if proof, err := c.leaveForProof(ctx); proof != "" || err != nil {
		return proof, err
	}
	return c.verify(ctx, position)
}

// reversal is what proved that the history of an etcd is no more.
type reversal struct {
	finder *claims // a stream in that etcd
	proof  string
	at     uint64    // a revision of the old history that is in no other
	served footprint // the same as it was served; of nobody where that was not to this process
	parted *parted   // protected by all.mu
	found  time.Time // when this process found it
}

// learn makes the stream leave its history if other streams have found that history to be no more. The stream was not open
// then, or could not be asked in which etcd it is.
func (c *claims) learn(ctx context.Context) (proof string, err error) {
	for {
		found, at, news := c.news()
		if !news {
			return "", nil
		}
		asks := c.asker()
		together, err := asks.besideAnyOf(ctx, c.all.askable(found.finder))
		if isDenied(err) || err != nil && !asks.silences(err) && time.Since(found.found) >= finderPatience {
			// Nobody is left who could be asked: it may have been this etcd. If it is the stream that is refused, nothing is known yet.
			_, err = asks.trueNow(ctx)
			together = err == nil
		}
		if err != nil {
			return "", err
		}
		if together {
			if err := c.partFurther(ctx, found, at); err != nil {
				return "", err
			}
			c.leave(witness{}, found, at)
			return found.proof, nil
		}
		c.all.mu.Lock()
		c.told = max(c.told, at+1) // The prober and the stream may learn at once.
		c.all.mu.Unlock()
	}
}

// asker is the stream. If the server cannot be asked for it, asker is another one in its etcd, if one is known.
func (c *claims) asker() *claims {
	if !c.asks() {
		for _, other := range c.inEtcd() {
			if other.asks() {
				return other
			}
		}
	}
	return c
}

// partFurther asks again where the histories have parted, if only now it is known that what the stream was served was of that
// etcd. Others may be in the new history already. What they are served there says nothing about it.
func (c *claims) partFurther(ctx context.Context, found reversal, at int) error {
	c.all.mu.Lock()
	own := c.trailLocked(at)
	c.all.mu.Unlock()
	for {
		c.all.mu.Lock()
		before := *found.parted
		c.all.mu.Unlock()
		own = unasked(own, before.trail) // Another one may have asked about it.
		if len(own) == 0 {
			return nil
		}
		p, err := part(ctx, slices.Concat(before.trail, own), found.at, found.served)
		if err != nil {
			return err
		}
		if p.common.revision < before.common.revision {
			p.common = before.common // A server that has just been restarted does not answer for all.
		}
		if c.partedAs(p, len(before.trail), found, at) {
			return nil
		}
	}
}

// partedAs takes over where histories have parted, unless another stream has told more of it meanwhile.
func (c *claims) partedAs(p parted, before int, found reversal, at int) bool {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if len(found.parted.trail) != before {
		return false
	}
	*found.parted = p
	c.leaveBehindLocked(at, p.trail)
	return true
}

// besideAnyOf reports whether the stream is kept in the etcd of the others. The first of them for which the server answers
// decides. If it answers for none, the error is that of one for which it may answer later, if there is one.
func (c *claims) besideAnyOf(ctx context.Context, others []*claims) (together bool, err error) {
	for _, other := range others {
		together, failed := other.sameEtcd(ctx, c, (*claims).trueNow)
		if failed == nil || c.silences(failed) {
			return together, failed
		}
		if err == nil || isDenied(err) {
			err = failed
		}
	}
	return false, err
}

// askable are the stream and some others in its etcd that are followed: its own resource may not be served any more.
func (r *revisions) askable(of *claims) []*claims {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := []*claims{of}
	for _, c := range r.streams {
		if c != of && c.headLocked() == of.headLocked() && c.asksLocked() && len(found) < askedBeside {
			found = append(found, c)
		}
	}
	return found
}

// news is the oldest reversal of which the stream has not learned yet, and its number.
func (c *claims) news() (found reversal, at int, news bool) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.told >= len(c.all.reversals) {
		return reversal{}, 0, false
	}
	return c.all.reversals[c.told], c.told, true
}

// verify holds the newest living object of the stream against etcd, at the stream's position. What proves that etcd has another history
// is told to all streams in it.
func (c *claims) verify(ctx context.Context, position uint64) (proof string, err error) {
	e, err := c.compare(ctx, position)
	if e.proof == "" || err != nil {
		return "", err
	}
	return c.leavesFor(ctx, e)
}

// leavesFor makes the stream leave a history, and gives the proof if it has left. Others that could not be told must not hold
// it up.
func (c *claims) leavesFor(ctx context.Context, e evidence) (proof string, err error) {
	err = c.found(ctx, e)
	if proof = c.leftFor(); proof != "" {
		return proof, nil
	}
	return "", err
}

// errFoundBeside is why a stream asks again: it has to learn first of what another one has found.
var errFoundBeside = errors.New("another stream has seen the history go backwards")

// found makes the stream, and all others in its etcd, leave a history that is no more. After an error it is tried again. The
// proof may not be found a second time, when the new history has come further.
func (c *claims) found(ctx context.Context, e evidence) error {
	err := c.leaveFor(ctx, e)
	for errors.Is(err, errFoundBeside) {
		if _, err = c.learn(ctx); err == nil && !c.left() {
			err = c.leaveFor(ctx, e)
		}
	}
	if err != nil {
		c.keepProof(e)
		return err
	}
	if err := c.all.tell(ctx); err != nil {
		return fmt.Errorf("tell other streams that history went backwards: %v", err) //nolint:errorlint // what one of them is refused is nothing to this one
	}
	return nil
}

// keepProof keeps what has proved that a history is no more, until the stream has left it. The first proof says best where the gap begins.
func (c *claims) keepProof(e evidence) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.isInLocked(e.history) && (c.evidence == nil || c.evidence.history != e.history) {
		c.evidence = &e
	}
}

// leaveForProof has the stream leave its history if that was proved to be no more before.
func (c *claims) leaveForProof(ctx context.Context) (proof string, err error) {
	c.all.mu.Lock()
	if c.evidence != nil && !c.isInLocked(c.evidence.history) {
		c.evidence = nil
	}
	e := c.evidence
	c.all.mu.Unlock()
	if e == nil {
		return "", nil
	}
	return c.leavesFor(ctx, *e)
}

// leaveForProofs is the same for all streams, also those that are not followed any more, because others in their etcd may not
// be told otherwise. It asks once for an etcd for which the server does not answer.
func (r *revisions) leaveForProofs(ctx context.Context) (failed error) {
	r.mu.Lock()
	var proved, apart []*claims
	for _, c := range r.streams {
		switch {
		case c.evidence == nil || !c.isInLocked(c.evidence.history) || len(c.untold) > 0:
		case c.asksLocked():
			proved = append(proved, c)
		default:
			apart = append(apart, c)
		}
	}
	r.mu.Unlock()
	silent := map[*claims]bool{}
	for _, c := range append(proved, apart...) {
		r.mu.Lock()
		head := c.headLocked()
		r.mu.Unlock()
		if silent[head] {
			continue
		}
		if _, err := c.leaveForProof(ctx); err != nil {
			failed, silent[head] = errors.Join(failed, err), true
		}
	}
	return failed
}

// isInLocked reports whether the stream is still in the history of that number.
func (c *claims) isInLocked(history int) bool { return !c.reversed && c.history == history }

// leaveFor has the stream leave a history that is no more, and others be told why. All streams may come upon that at once: one asks.
func (c *claims) leaveFor(ctx context.Context, e evidence) error {
	c.all.finding.Lock()
	defer c.all.finding.Unlock()
	c.all.mu.Lock()
	at := len(c.all.reversals)
	left, late, trail := !c.isInLocked(e.history), c.told < at, c.trailLocked(at)
	c.all.mu.Unlock()
	switch {
	case left:
		return nil
	case late:
		return errFoundBeside
	}
	// Gaps begin there.
	p, err := part(ctx, trail, e.at, e.served)
	if asks := c.asker(); err != nil && ctx.Err() == nil && !slices.ContainsFunc(trail, func(f footprint) bool { return f.of == asks }) {
		_, err = asks.now(ctx) // For the others there may never be an answer: the gap rather begins too early.
	}
	if err != nil {
		return err
	}
	r := reversal{finder: c, proof: e.proof, at: e.at, served: e.served, parted: &p, found: time.Now()}
	c.all.mu.Lock()
	if !c.isInLocked(e.history) { // A list has shown it meanwhile.
		c.all.mu.Unlock()
		return nil
	}
	c.all.reversals = append(c.all.reversals, r)
	c.leaveBehindLocked(at, p.trail)
	c.all.mu.Unlock()
	c.leave(e.undone, r, at)
	return nil
}

// evidence is what proves that a history is no more; proof is empty where nothing does.
type evidence struct {
	proof  string
	undone witness   // what was served and is not in etcd
	at     uint64    // a revision of the old history that is in no other
	served footprint // the same as it was served; of nobody where that was not to this process
	// history is the number of that, among those of the stream.
	history int
}

func (c *claims) compare(ctx context.Context, position uint64) (evidence, error) {
	var doubted witness
	for {
		w, at, history := c.expected()
		if at == 0 {
			at = position
		}
		what, err := c.look(ctx, w, at)
		if err == nil && what == unknown {
			what, err = c.lookNow(ctx, w)
		}
		switch {
		case err != nil:
			return evidence{}, err
		case what == ahead:
			return evidence{fmt.Sprintf("%s was recorded up to resource version %d, which etcd has not come to", c.name, at), w, at, c.servedHere(at), history}, nil
		case what == other && w.name == "", what == same, what == unknown:
			return c.compareFurther(ctx, at, position, history)
		case w.name == doubted.name && w.namespace == doubted.namespace && w.revision == doubted.revision:
			proof := fmt.Sprintf("%s %s/%s was recorded with resource version %d, and was something else in etcd at %d", c.name, w.namespace, w.name, w.revision, at)
			return evidence{proof, w, w.revision, c.servedHere(w.revision), history}, nil
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

// servedHere is a revision as it was served to this process, zero where it comes from the record. When that was is known of the position only.
func (c *claims) servedHere(revision uint64) (f footprint) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if revision <= max(c.resumed.revision, c.recorded) {
		return f
	}
	f = footprint{of: c, witness: witness{revision: revision}}
	if revision == c.position {
		f.at, f.recorded = c.moved, c.all.recordedAt(c.moved)
	}
	return f
}

// compareFurther asks whether etcd has come to a position beyond that of the record: that of a spool.
func (c *claims) compareFurther(ctx context.Context, at, position uint64, history int) (e evidence, err error) {
	if position <= at {
		return e, nil
	}
	what, err := c.look(ctx, witness{}, position)
	if what == ahead {
		e = evidence{proof: fmt.Sprintf("%s was followed up to resource version %d, which etcd has not come to", c.name, position), at: position, history: history}
	}
	return e, err
}

// expected is the newest living object, the revision at which it was certainly the newest version, and the number of the
// history.
func (c *claims) expected() (w witness, at uint64, history int) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	w = c.newestLocked()
	return w, max(c.position, w.revision), c.history
}

// leave notes that the stream was in a history that is no more. Another stream may have told it of that reversal meanwhile, by
// the number that this has here. The stream may even have been listed since.
func (c *claims) leave(undone witness, found reversal, at int) {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	if c.reversed || c.told > at {
		return
	}
	if c.doubt = c.doubtLocked(found.parted); c.doubt == nil && found.finder == nil {
		c.doubt = c.doubtOfRecordLocked() // Who has found it is no more.
	}
	c.reversed, c.undone, c.told, c.parted, c.proof = true, undone, len(c.all.reversals), found.parted, found.proof
	c.history++
	c.forgetLocked()
	if c.reverse != nil {
		c.reverse(found.proof)
	}
}

// forgetLocked drops what was known in a history that is no more. All claims go: whose they are in the new one is not known.
func (c *claims) forgetLocked() {
	for _, other := range c.all.streams {
		other.newest = nil
	}
	c.claimed, c.position, c.living, c.evidence = 0, 0, nil, nil
	c.fresh, c.due, c.paused = samples{}, samples{}, samples{}
}

// tell makes the streams learn of what was found, many at once. If a server does not answer for some, that must not hold up
// the others, or the finder. Streams that cannot be asked learn it when they are watched next, or with the next probe.
func (r *revisions) tell(ctx context.Context) error {
	r.telling.Lock()
	defer r.telling.Unlock()
	r.mu.Lock()
	var others []*claims
	for _, o := range r.streams {
		if o.told < len(r.reversals) && !o.reversed && o.position != 0 && (o.asksLocked() || o.headLocked() == r.reversals[o.told].finder.headLocked()) {
			others = append(others, o)
		}
	}
	r.mu.Unlock()
	var learning errgroup.Group
	learning.SetLimit(toldAtOnce)
	failed := make([]error, len(others))
	for i, o := range others {
		learning.Go(func() error {
			_, failed[i] = o.learn(ctx)
			return nil
		})
	}
	_ = learning.Wait()
	return errors.Join(failed...)
}
