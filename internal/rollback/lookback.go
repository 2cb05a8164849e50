package rollback

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/kube"
)

// lookBack compares with etcd what was served since the last probe.
func (r *Streams) lookBack(ctx context.Context) error {
	l := &lookBack{began: r.now(), taken: r.takeSamples(), silent: map[*Stream]bool{}}
	var verified []*etcd
	for _, some := range l.taken {
		if l.compare(ctx, some.samples) {
			verified = append(verified, some.of)
		}
	}
	for _, e := range verified {
		r.verify(e, l.began)
	}
	return l.failed
}

// compare compares the samples of one etcd. It reports whether there was an answer for the first, the newest, and none proves
// that the history is no more.
func (l *lookBack) compare(ctx context.Context, samples []*sample) (newest bool) {
	newest = true
	for i, s := range samples {
		proof, answered := l.look(ctx, s)
		newest = newest && (i > 0 || answered)
		if proof == "" || !s.stands() {
			continue
		}
		l.fails(s.of.found(ctx, evidence{proof, s.witness, s.asOf(), !s.recalled, s.recorded, s.history}))
		for _, after := range samples[i+1:] { // A stream that leaves by a list of its own, meanwhile or later, tells nobody.
			after.owe()
		}
		return false
	}
	return newest
}

// sampledOf are the samples of one etcd.
type sampledOf struct {
	of      *etcd
	samples []*sample
}

// A lookBack is one comparison of samples with etcd. If a server does not answer for a stream, it is asked no more for it this
// time, because samples of other streams are not kept for long.
type lookBack struct {
	began     time.Time // by the clock of the record
	taken     []sampledOf
	silent    map[*Stream]bool // for which the server does not answer
	answering time.Duration    // how long the answers took
	failed    error
}

func (l *lookBack) fails(err error) { l.failed = errors.Join(l.failed, err) }

// look compares one sample with etcd. It gives what proves that its history is no more, "" if nothing does, and whether there
// was an answer.
func (l *lookBack) look(ctx context.Context, s *sample) (proof string, answered bool) {
	if l.answering >= lookTime {
		s.owe()
		return "", false
	}
	s.turns++
	if l.silent[s.of] {
		s.owe()
		return "", false
	}
	began := time.Now()
	what, err := s.of.ask.lookUntilAnswered(ctx, s.witness, s.asOf())
	if err != nil && !kube.SaysNothing(err) {
		l.hush(ctx, s.of)
		l.fails(err)
		s.owe() // A server that cannot answer now is restarted, perhaps with an older etcd.
		return "", false
	}
	l.answering += time.Since(began)
	if err != nil {
		l.fails(err)
		s.refuse()
		return "", false
	}
	s.answered(what)
	return s.proof(what), true
}

// hush notes that the server does not answer for a stream. When it does so first, the others are asked all at once: one at a
// time would take too long.
func (l *lookBack) hush(ctx context.Context, c *Stream) {
	if len(l.silent) == 0 {
		l.silent, _ = askAll(ctx, l.beside(c))
	}
	l.silent[c] = true
}

// beside are the other streams of which there are samples.
func (l *lookBack) beside(c *Stream) (streams []*Stream) {
	for _, some := range l.taken {
		for _, s := range some.samples {
			if s.of != c && !slices.Contains(streams, s.of) {
				streams = append(streams, s.of)
			}
		}
	}
	return streams
}

// takeSamples gives what the probe has to look at, by etcd. The newest version of all comes first, because nothing may follow
// that shows a silence. Then come samples without an answer so far. Then come some dozen of what was sampled since the last
// time, from all of it. Samples of a stream that cannot be asked for wait.
func (r *Streams) takeSamples() (taken []sampledOf) {
	r.mu.Lock()
	defer r.mu.Unlock()
	paused, due, fresh := map[*etcd][]*sample{}, map[*etcd][]*sample{}, map[*etcd][]*sample{}
	for _, c := range r.streams {
		if e := c.etcd; c.provesLocked() {
			paused[e], due[e], fresh[e] = append(paused[e], c.sampled.paused.kept...), append(due[e], c.sampled.due.kept...), append(fresh[e], c.sampled.fresh.kept...)
			c.sampled.fresh = samples{}
		}
	}
	for e := range fresh {
		known := map[step]bool{}
		once := func(all []*sample) []*sample {
			return slices.DeleteFunc(all, func(s *sample) bool {
				again := known[s.step()]
				known[s.step()] = true
				return again
			})
		}
		var newest []*sample
		if last := e.newestLocked(); last != nil {
			newest = append(newest, last)
		}
		taken = append(taken, sampledOf{e, slices.Concat(newest, inTurn(once(paused[e]), samplesPerProbe), inTurn(once(due[e]), duePerProbe),
			spread(once(fresh[e]), samplesPerProbe))})
	}
	return taken
}

// inTurn gives that many samples at most, of those that had the fewest turns. A sample for which the server does not answer
// must not keep others waiting.
func inTurn(all []*sample, most int) (some []*sample) {
	slices.SortStableFunc(all, func(a, b *sample) int { return cmp.Compare(a.turns, b.turns) })
	for len(all) > 0 && len(some) < most {
		next := slices.IndexFunc(all, func(s *sample) bool { return s.turns > all[0].turns })
		if next < 0 {
			next = len(all)
		}
		some = append(some, spread(all[:next], most-len(some))...)
		all = all[next:]
	}
	return some
}

// spread gives that many samples at most, evenly from all, in the order in which they were served. The first is always among
// them, because it begins the time in which nobody has looked.
func spread(all []*sample, most int) []*sample {
	slices.SortStableFunc(all, func(a, b *sample) int {
		return cmp.Or(a.recorded.Compare(b.recorded), cmp.Compare(a.revision, b.revision))
	})
	most = min(len(all), most)
	some := make([]*sample, 0, most)
	for i := range most {
		some = append(some, all[i*len(all)/most])
	}
	return some
}
