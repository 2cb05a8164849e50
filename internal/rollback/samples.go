package rollback

import (
	"fmt"
	"slices"
	"time"
)

const (
	// KeptSamples bounds the served versions that a stream keeps for the next probe. samplesPerProbe bounds the reads that
	// they cost an etcd. In a few seconds, an etcd may have been put back and have passed the record again. Then the newest
	// version is of the new history, and only an older one shows that there was another.
	KeptSamples     = 24
	samplesPerProbe = 24
	// keptDue and duePerProbe are the same for samples that wait for an answer. lookTime bounds how long the answers of one
	// probe may take.
	keptPending     = 96
	pendingPerProbe = 96
	maxAnswerTime   = probeEvery
	// mostRefused is how often the recorder asks about a version of which the server will not say anything. That takes ten
	// minutes, longer than most etcds remember.
	maxRefusals = int(10 * time.Minute / probeEvery)
)

// sample is a version that a stream was served: etcd has it at its revision, and always will.
type sample struct {
	observation
	listed      uint64 // the resource version of the list that has shown it; 0 if a watch has served it
	recalled    bool   // it is from the record
	pending     bool   // it waits for an answer
	beforePause bool   // it was served before a silence
	refusals    int    // how often the server would not say
	turns       int    // how often it was asked about, or its stream was silent
}

// asOf is the revision at which etcd is asked.
func (s *sample) checkRevision() uint64 { return max(s.listed, s.revision) }

// bare is the sample without the object.
func (s *sample) withoutDoc() sample {
	bare := *s
	bare.doc = nil
	return bare
}

// samples are some of the samples that were added, spread evenly over their number, and not over the time. After this process,
// or the network, has stood still, all that was written meanwhile comes at once. The first added is among them.
type sampleSet struct {
	kept            []*sample
	stride, skipped int // from one to the next, and since the last
}

// skip reports whether the next is left out.
func (s *sampleSet) skip() bool {
	if s.skipped++; s.skipped < s.stride {
		return true
	}
	s.skipped = 0
	return false
}

// add adds one that is not left out.
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

// sampled are the samples of a stream. Streams.mu protects them.
type streamSamples struct {
	fresh       sampleSet // of what was served since the last probe
	pending     sampleSet // for which there was no answer then, and those of a recorder before this one
	beforePause sampleSet // that were served before a silence
}

// serveLocked keeps a version now and then.
func (s *streamSamples) addFreshLocked(o observation) {
	if !s.fresh.skip() {
		o.recordTime = o.stream.all.now()
		s.fresh.add(&sample{observation: o}, KeptSamples)
	}
}

// keepLocked has the probes look at a sample until there is an answer, if it has an object.
func (s *streamSamples) addPendingLocked(one *sample) {
	if one.name != "" {
		one.pending, one.servedVersion = true, one.reduced()
		s.pending.add(one, keptPending)
	}
}

// waitingLocked is where the sample waits for an answer. What was served before a silence is not thinned among others.
func (s *streamSamples) pendingSetLocked(one *sample) *sampleSet {
	if one.beforePause {
		return &s.beforePause
	}
	return &s.pending
}

// oweLocked has the sample wait for an answer.
func (s *streamSamples) retryLocked(one *sample) {
	set := s.pendingSetLocked(one)
	if len(set.kept) == 0 {
		*set = sampleSet{}
	}
	if one.isCurrentLocked() && !set.skip() {
		set.add(one, keptPending)
	}
}

// dropLocked has the sample wait no more.
func (s *streamSamples) dropLocked(one *sample) {
	set := s.pendingSetLocked(one)
	set.kept = slices.DeleteFunc(set.kept, func(o *sample) bool { return o == one })
}

// owe has the next probes look at the sample until there is an answer.
func (s *sample) retry() {
	if s.pending {
		return
	}
	s.pending, s.servedVersion = true, s.reduced()
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	s.stream.samples.retryLocked(s)
}

// answered has nobody look at the sample any more.
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

// refuse notes that the server would not say. It may have no etcd, or have just been started; but there are versions of which it never says anything.
func (s *sample) noteRefusal() {
	if s.refusals++; s.refusals < maxRefusals {
		s.retry()
	} else {
		s.answered(inconclusive)
	}
}

// proof says why an answer shows that the history is no more, "" if it does not.
func (s *sample) proof(result lookResult) string {
	shows := map[lookResult]string{mismatch: "is something else in etcd", future: "etcd has not come to"}[result]
	if shows == "" {
		return ""
	}
	return fmt.Sprintf("%s %s/%s was served with resource version %d, which %s", s.stream.ask.name, s.namespace, s.name, s.checkRevision(), shows)
}

// stands reports whether the stream is still in the history in which the sample was taken.
func (s *sample) isCurrent() bool {
	s.stream.all.mu.Lock()
	defer s.stream.all.mu.Unlock()
	return s.isCurrentLocked()
}

func (s *sample) isCurrentLocked() bool { return s.stream.history.isCurrent(s.history) }
