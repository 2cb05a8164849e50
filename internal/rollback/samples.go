package rollback

import (
	"fmt"
	"slices"
	"time"
)

const (
	// probeEvery is the time from one probe to the next.
	probeEvery = 10 * time.Second
	// KeptSamples bounds the fresh samples of a stream. samplesPerProbe bounds the reads that they cost an etcd. In
	// a few seconds, an etcd may have been put back and have passed the record again. Then the newest version is of
	// the new history, and only an older one proves the rollback.
	KeptSamples     = 24
	samplesPerProbe = 24
	// keptPending and pendingPerProbe are the same bounds for pending samples. maxAnswerTime bounds how long the
	// answers of one probe may take, together.
	keptPending     = 96
	pendingPerProbe = 96
	maxAnswerTime   = probeEvery
	// maxRefusals is how often the server may refuse to say anything about one version. That takes ten minutes,
	// which is more history than most etcds keep.
	maxRefusals = int(10 * time.Minute / probeEvery)
)

// sample is a version that a stream was served, and that is to be checked. If there was no rollback, etcd holds it
// at its revision.
type sample struct {
	observation
	listedRevision uint64 // the resource version of its list; 0 if a watch served it
	recalled       bool   // it comes from the record
	pending        bool   // it waits for an answer
	beforePause    bool   // it was the newest version before a pause
	refusals       int    // how often the server refused to say anything
	turns          int    // how often it was checked, or its stream was unanswered
}

// checkRevision returns the revision at which etcd is asked.
func (s *sample) checkRevision() uint64 { return max(s.listedRevision, s.revision) }

// withoutDoc returns the sample without the object.
func (s *sample) withoutDoc() sample {
	bare := *s
	bare.doc = nil
	return bare
}

// sampleSet holds some of the samples that were added, spread evenly over their number and not over the time. After
// this process or the network has stood still, all that was written in between comes at once. The first one that
// was added is among them.
type sampleSet struct {
	kept            []*sample
	stride, skipped int // from one kept sample to the next, and since the last one
}

// skip reports whether the next sample is not kept.
func (s *sampleSet) skip() bool {
	if s.skipped++; s.skipped < s.stride {
		return true
	}
	s.skipped = 0
	return false
}

// add adds a sample that skip did not reject.
func (s *sampleSet) add(one *sample, most int) {
	s.kept = append(s.kept, one)
	if len(s.kept) <= most {
		return
	}
	half := make([]*sample, 0, most)
	for i := 0; i < len(s.kept); i += 2 {
		half = append(half, s.kept[i])
	}
	s.kept, s.stride = half, 2*max(s.stride, 1)
}

// streamSamples are the samples of a stream. Streams.mu protects them.
type streamSamples struct {
	fresh       sampleSet // served since the last probe
	pending     sampleSet // without an answer so far, and those of an earlier recorder
	beforePause sampleSet // pending, too, and each the newest version before a pause
}

// addFreshLocked keeps some of the versions.
func (s *streamSamples) addFreshLocked(o observation) {
	if !s.fresh.skip() {
		o.recordTime = o.stream.all.now()
		s.fresh.add(&sample{observation: o}, KeptSamples)
	}
}

// addPendingLocked adds a sample, if it has an object. The probes check it until there is an answer.
func (s *streamSamples) addPendingLocked(one *sample) {
	if one.name != "" {
		one.pending, one.servedVersion = true, one.reduced()
		s.pending.add(one, keptPending)
	}
}

// pendingSetLocked returns the set in which the sample waits for an answer. The newest version before a pause has a
// set of its own: in the larger set, the thinning could drop it.
func (s *streamSamples) pendingSetLocked(one *sample) *sampleSet {
	if one.beforePause {
		return &s.beforePause
	}
	return &s.pending
}

// retryLocked makes the sample wait for an answer.
func (s *streamSamples) retryLocked(one *sample) {
	set := s.pendingSetLocked(one)
	if len(set.kept) == 0 {
		*set = sampleSet{}
	}
	if one.isCurrentLocked() && !set.skip() {
		set.add(one, keptPending)
	}
}

// dropLocked removes a pending sample.
func (s *streamSamples) dropLocked(one *sample) {
	set := s.pendingSetLocked(one)
	set.kept = slices.DeleteFunc(set.kept, func(o *sample) bool { return o == one })
}

// retry makes the next probes check the sample until there is an answer.
func (s *sample) retry() {
	if s.pending {
		return
	}
	s.pending, s.servedVersion = true, s.reduced()
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	s.stream.samples.retryLocked(s)
}

// answered notes an answer. No probe checks the sample again.
func (s *sample) answered(result lookResult) {
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	if result == match {
		s.stream.etcd.noteHeldLocked(s, time.Now())
	}
	if s.pending {
		s.stream.samples.dropLocked(s)
	}
}

// noteRefusal notes that the server refused to say anything. It may have no etcd, or have just started. But about
// some versions a server never says anything, so there is a limit.
func (s *sample) noteRefusal() {
	if s.refusals++; s.refusals < maxRefusals {
		s.retry()
	} else {
		s.answered(inconclusive)
	}
}

// proof returns why a result proves a rollback, "" if it does not.
func (s *sample) proof(result lookResult) string {
	shows := map[lookResult]string{mismatch: "but etcd holds another version, or none", future: "which etcd has not reached"}[result]
	if shows == "" {
		return ""
	}
	return fmt.Sprintf("%s %s/%s was served with resource version %d, %s", s.stream.ask.name, s.namespace, s.name, s.checkRevision(), shows)
}

// isCurrent reports whether the stream is still in the history of the sample.
func (s *sample) isCurrent() bool {
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	return s.isCurrentLocked()
}

func (s *sample) isCurrentLocked() bool { return s.stream.history.isCurrent(s.historyNumber) }
