package stream

import (
	"context"
	"time"

	"github.com/kuberewind/kuberewind/delta"
	"github.com/kuberewind/kuberewind/deltafifo"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/times"
	"github.com/kuberewind/kuberewind/kube"
)

// Clock is the clock of the record.
type Clock interface {
	Now() time.Time
	Raise(time.Time)
}

// Resume goes on from the entries that an earlier recorder left in a spool, and gives the spool to the options of the
// queue. It returns the time of the last entry. When it is called, no stream is open; it opens the streams of the
// entries.
func (s *Set) Resume(ctx context.Context, folder *spooling.Folder, owner spooling.Owner, o *deltafifo.Options, clock Clock) (seen time.Time, err error) {
	s.corrupt = folder.Corrupt
	o.OnSpill = folder.Spilled
	o.Codec = spooling.Codec{Stream: func(resource kube.Resource) (spooling.Stream, error) {
		st, _, err := s.Open(ctx, resource, "")
		return st, err
	}}
	left, unreadable, err := folder.Resume(owner, s.options.Record.Info().Offset, o.Codec)
	if err != nil {
		return time.Time{}, err
	}
	if unreadable {
		for _, st := range s.All() {
			st.setExpiryCause(delta.CauseSpoolCorrupt)
		}
	}
	o.Spool = folder.Spool()
	if len(left) == 0 {
		return time.Time{}, nil
	}
	for _, l := range left {
		seen = times.Later(seen, l.At)
	}
	// Reading the spool may have taken minutes, in which nothing was observed either.
	s.options.Record.StartAfter(times.Later(seen, clock.Now()))
	clock.Raise(s.options.Record.Info().Started)
	o.Left = s.take(left)
	return seen, nil
}

// take makes the streams go on from their entries in the spool.
func (s *Set) take(left map[spooling.Stream]*spooling.Leftover) map[any]deltafifo.Spooled {
	info, spooled := s.options.Record.Info(), map[any]deltafifo.Spooled{}
	for of, l := range left {
		st := of.(*Stream)
		if st.standing.interrupted = l.Interrupted; l.Entries == 0 {
			continue // The stream has no entries, but its gap begins there.
		}
		st.leftover, st.dating.since = l, info.Started
		if l.Rules != nil {
			st.standing.listedUnder = *l.Rules
		}
		if st.recorded.Position() != "" {
			st.dating.live.resume(times.Later(l.At, info.Observed), info.Started)
		}
		spooled[st] = l.Spooled
	}
	return spooled
}
