package rollback

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/kube"
)

// lookBack checks the samples that were taken since the last probe, and the pending ones.
func (r *Streams) lookBack(ctx context.Context) error {
	l := &lookBack{beganAt: r.now(), taken: r.takeSamples(), unanswered: map[*Stream]bool{}}
	var verified []*etcdState
	for _, some := range l.taken {
		if l.compare(ctx, some.samples) {
			verified = append(verified, some.etcd)
		}
	}
	for _, e := range verified {
		r.noteVerified(e, l.beganAt)
	}
	return l.failed
}

// compare checks the samples of one etcd. It reports whether the first sample, the newest version, had an answer,
// and no sample proved a rollback.
func (l *lookBack) compare(ctx context.Context, samples []*sample) (newest bool) {
	newest = true
	for i, s := range samples {
		proof, answered := l.check(ctx, s)
		newest = newest && (i > 0 || answered)
		if proof == "" || !s.isCurrent() {
			continue
		}
		l.addError(s.stream.rollBack(ctx, evidence{proof, s.servedVersion, s.checkRevision(), !s.recalled, s.recordTime, s.historyNumber}))
		for _, after := range samples[i+1:] { // If a list shows the rollback first, only its own stream is rolled back. So the other samples stay pending.
			after.retry()
		}
		return false
	}
	return newest
}

// etcdSamples are the samples of one etcd.
type etcdSamples struct {
	etcd    *etcdState
	samples []*sample
}

// lookBack is one check of samples. If the server does not answer for a stream, lookBack asks no more about that
// stream this time: the samples of other streams are not kept for long.
type lookBack struct {
	beganAt    time.Time // by the record's clock
	taken      []etcdSamples
	unanswered map[*Stream]bool // the streams for which the server does not answer
	answerTime time.Duration    // how long the answers took, together
	failed     error
}

func (l *lookBack) addError(err error) { l.failed = errors.Join(l.failed, err) }

// check checks one sample in etcd. It returns the proof of a rollback, "" if there is none, and whether etcd
// answered.
func (l *lookBack) check(ctx context.Context, s *sample) (proof string, answered bool) {
	if l.answerTime >= maxAnswerTime {
		s.retry()
		return "", false
	}
	s.turns++
	if l.unanswered[s.stream] {
		s.retry()
		return "", false
	}
	began := time.Now()
	result, err := s.stream.ask.lookUntilAnswered(ctx, s.servedVersion, s.checkRevision())
	if err != nil && !kube.IsPermanentRefusal(err) {
		l.noteUnanswered(ctx, s.stream)
		l.addError(err)
		s.retry() // A server that cannot answer now is restarted, perhaps with an older etcd.
		return "", false
	}
	l.answerTime += time.Since(began)
	if err != nil {
		l.addError(err)
		s.noteRefusal()
		return "", false
	}
	// The watch has delivered the version, so a mismatch needs no confirmation, as one of a comparison does.
	s.answered(result)
	return s.proof(result), true
}

// noteUnanswered notes that the server does not answer for a stream. For the first such stream, it asks at once for
// all other streams: to wait for one after another would take too long.
func (l *lookBack) noteUnanswered(ctx context.Context, c *Stream) {
	if len(l.unanswered) == 0 {
		l.unanswered, _ = findUnanswered(ctx, l.otherStreams(c))
	}
	l.unanswered[c] = true
}

// otherStreams returns the other streams that have samples.
func (l *lookBack) otherStreams(c *Stream) (streams []*Stream) {
	for _, some := range l.taken {
		for _, s := range some.samples {
			if s.stream != c && !slices.Contains(streams, s.stream) {
				streams = append(streams, s.stream)
			}
		}
	}
	return streams
}

// takeSamples returns the samples that a probe checks, by etcd. First comes the newest version of all:
// perhaps no later version ever comes to show a pause after it. Then come the samples from before a pause, and the pending ones.
// Last come some dozen of the fresh samples, spread over all of them. Samples of a stream wait if the server cannot
// be asked about it.
func (r *Streams) takeSamples() (taken []etcdSamples) {
	r.mu.Lock()
	defer r.mu.Unlock()
	beforePause, pending, fresh := map[*etcdState][]*sample{}, map[*etcdState][]*sample{}, map[*etcdState][]*sample{}
	for _, c := range r.streams {
		if e := c.etcd; c.canProveLocked() {
			beforePause[e], pending[e], fresh[e] = append(beforePause[e], c.samples.beforePause.kept...), append(pending[e], c.samples.pending.kept...), append(fresh[e], c.samples.fresh.kept...)
			c.samples.fresh = sampleSet{}
		}
	}
	for e := range fresh {
		known := map[observationKey]bool{}
		once := func(all []*sample) []*sample {
			return slices.DeleteFunc(all, func(s *sample) bool {
				again := known[s.key()]
				known[s.key()] = true
				return again
			})
		}
		var newest []*sample
		if last := e.newestToCheckLocked(); last != nil {
			newest = append(newest, last)
		}
		taken = append(taken, etcdSamples{e, slices.Concat(newest, inTurn(once(beforePause[e]), samplesPerProbe), inTurn(once(pending[e]), pendingPerProbe),
			spread(once(fresh[e]), samplesPerProbe))})
	}
	return taken
}

// inTurn returns at most so many samples: those with the fewest turns. So a sample without an answer does not keep
// others waiting.
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

// spread returns at most so many samples, spread evenly over all, in the order in which they were served. The first
// is always among them, because it begins the time that no probe has checked.
func spread(all []*sample, most int) []*sample {
	slices.SortStableFunc(all, func(a, b *sample) int {
		return cmp.Or(a.recordTime.Compare(b.recordTime), cmp.Compare(a.revision, b.revision))
	})
	most = min(len(all), most)
	some := make([]*sample, 0, most)
	for i := range most {
		some = append(some, all[i*len(all)/most])
	}
	return some
}
