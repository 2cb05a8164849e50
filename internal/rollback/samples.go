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
	keptDue     = 96
	duePerProbe = 96
	lookTime    = probeEvery
	// mostRefused is how often the recorder asks about a version of which the server will not say anything. That takes ten
	// minutes, longer than most etcds remember.
	mostRefused = int(10 * time.Minute / probeEvery)
)

// sample is a version that a stream was served: etcd has it at its revision, and always will.
type sample struct {
	footprint
	listed   uint64 // the resource version of the list that has shown it; 0 if a watch has served it
	recalled bool   // it is from the record
	due      bool   // it waits for an answer
	paused   bool   // it was served before a silence
	refused  int    // how often the server would not say
	turns    int    // how often it was asked about, or its stream was silent
}

// asOf is the revision at which etcd is asked.
func (s *sample) asOf() uint64 { return max(s.listed, s.revision) }

// bare is the sample without the object.
func (s *sample) bare() sample {
	bare := *s
	bare.doc = nil
	return bare
}

// samples are some of the samples that were added, spread evenly over their number, and not over the time. After this process,
// or the network, has stood still, all that was written meanwhile comes at once. The first added is among them.
type samples struct {
	kept            []*sample
	stride, skipped int // from one to the next, and since the last
}

// skip reports whether the next is left out.
func (s *samples) skip() bool {
	if s.skipped++; s.skipped < s.stride {
		return true
	}
	s.skipped = 0
	return false
}

// add adds one that is not left out.
func (s *samples) add(one *sample, most int) {
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
type sampled struct {
	fresh  samples // of what was served since the last probe
	due    samples // for which there was no answer then, and those of a recorder before this one
	paused samples // that were served before a silence
}

// serveLocked keeps a version now and then.
func (s *sampled) serveLocked(f footprint) {
	if !s.fresh.skip() {
		f.recorded = f.of.all.now()
		s.fresh.add(&sample{footprint: f}, KeptSamples)
	}
}

// keepLocked has the probes look at a sample until there is an answer, if it has an object.
func (s *sampled) keepLocked(one *sample) {
	if one.name != "" {
		one.due, one.witness = true, one.reduced()
		s.due.add(one, keptDue)
	}
}

// waitingLocked is where the sample waits for an answer. What was served before a silence is not thinned among others.
func (s *sampled) waitingLocked(one *sample) *samples {
	if one.paused {
		return &s.paused
	}
	return &s.due
}

// oweLocked has the sample wait for an answer.
func (s *sampled) oweLocked(one *sample) {
	waiting := s.waitingLocked(one)
	if len(waiting.kept) == 0 {
		*waiting = samples{}
	}
	if one.standsLocked() && !waiting.skip() {
		waiting.add(one, keptDue)
	}
}

// dropLocked has the sample wait no more.
func (s *sampled) dropLocked(one *sample) {
	waiting := s.waitingLocked(one)
	waiting.kept = slices.DeleteFunc(waiting.kept, func(o *sample) bool { return o == one })
}

// owe has the next probes look at the sample until there is an answer.
func (s *sample) owe() {
	if s.due {
		return
	}
	s.due, s.witness = true, s.reduced()
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	s.of.sampled.oweLocked(s)
}

// answered has nobody look at the sample any more.
func (s *sample) answered(what sight) {
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	if what == same {
		s.of.etcd.holdsLocked(s, time.Now())
	}
	if s.due {
		s.of.sampled.dropLocked(s)
	}
}

// refuse notes that the server would not say. It may have no etcd, or have just been started; but there are versions of which it never says anything.
func (s *sample) refuse() {
	if s.refused++; s.refused < mostRefused {
		s.owe()
	} else {
		s.answered(unknown)
	}
}

// proof says why an answer shows that the history is no more, "" if it does not.
func (s *sample) proof(what sight) string {
	now := map[sight]string{other: "is something else in etcd", ahead: "etcd has not come to"}[what]
	if now == "" {
		return ""
	}
	return fmt.Sprintf("%s %s/%s was served with resource version %d, which %s", s.of.ask.name, s.namespace, s.name, s.asOf(), now)
}

// stands reports whether the stream is still in the history in which the sample was taken.
func (s *sample) stands() bool {
	s.of.all.mu.Lock()
	defer s.of.all.mu.Unlock()
	return s.standsLocked()
}

func (s *sample) standsLocked() bool { return s.of.history.is(s.history) }
