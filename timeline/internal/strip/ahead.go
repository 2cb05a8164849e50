package strip

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/timeline/activity"
	"github.com/kuberewind/kuberewind/timeline/internal/ask"
	"github.com/kuberewind/kuberewind/timeline/internal/class"
	"github.com/kuberewind/kuberewind/timeline/internal/marks"
)

// Ahead says how many counts of an answer were made ahead. It is nil if the filter does not allow the use of such counts.
type Ahead struct {
	Deltas  int64  `json:"deltas"`         // counted ahead, in the window and around it
	Missing int64  `json:"missing"`        // not counted ahead: these are read one by one
	Text    string `json:"text,omitempty"` // set if so many are missing that the answer is slower
}

// manyMissing is more than the number of deltas that wait to be counted while the recorder counts.
const manyMissing = 4 * activity.BlockDeltas

// A piece is a range of seqs that is counted in one way: from blocks, or delta by delta if there are no blocks.
type piece struct {
	first, last int64
	blocks      []activity.Block
}

// pieces divides the seqs to count, the newest first.
func (c *Counter) pieces(ctx context.Context, q Query, p progress) ([]piece, error) {
	if p.first > p.last {
		return nil, nil
	}
	if !countable(q.Filter) {
		return []piece{{first: p.first, last: p.last}}, nil
	}
	blocks, err := activity.Blocks(ctx, c.Record, p.first, p.last)
	if err != nil {
		return nil, err
	}
	// A block that ends after the head holds later deltas. A block that ends after the seqs of a cursor holds deltas that
	// an earlier answer counted.
	most := p.head
	if q.Cursor != "" {
		most = p.last
	}
	blocks = slices.DeleteFunc(blocks, func(b activity.Block) bool { return b.Last > most })
	return divided(blocks, p.first, p.last), nil
}

// divided returns the blocks and the ranges between them, the newest first. Blocks may reach beyond the seqs: those deltas
// occurred outside the window.
func divided(blocks []activity.Block, first, last int64) (all []piece) {
	left := last
	for len(blocks) > 0 {
		newest := blocks[len(blocks)-1]
		if newest.Last < left {
			all = append(all, piece{first: newest.Last + 1, last: left})
		}
		begin := len(blocks) - 1
		for begin > 0 && blocks[begin-1].Last == blocks[begin].First-1 {
			begin--
		}
		all = append(all, piece{first: blocks[begin].First, last: newest.Last, blocks: blocks[begin:]})
		left, blocks = blocks[begin].First-1, blocks[:begin]
	}
	if left >= first {
		all = append(all, piece{first: first, last: left})
	}
	return all
}

// countable reports whether counts made ahead can answer a filter.
func countable(f ask.Filter) bool {
	return f.Name == "" && f.Labels == nil && f.Path == "" && f.Types == nil
}

// width returns the width of the counts from which the bars can be made.
func (p progress) width() activity.Width {
	whole := func(of time.Duration) bool {
		return p.step%of == 0 && p.window.From.Equal(p.window.From.Truncate(of))
	}
	switch {
	case whole(time.Hour):
		return activity.Hour
	case whole(time.Minute):
		return activity.Minute
	}
	return activity.Delta
}

// count counts the pieces until the time is spent, but not before the first slice. left is the last seq that it did not
// count; it is below p.first if it counted all.
func (c *Counter) count(ctx context.Context, q Query, p progress, s *Strip, reading *marks.Reading) (left int64, err error) {
	began := time.Now()
	pieces, err := c.pieces(ctx, q, p)
	if err != nil {
		return 0, err
	}
	for _, of := range pieces {
		if of.blocks == nil {
			s.Ahead.Missing += of.last - of.first + 1
		}
	}
	for i, of := range pieces {
		rest := c.Patience - time.Since(began)
		if i > 0 && rest <= 0 {
			return of.last, nil
		}
		if of.blocks != nil {
			done, err := c.counted(ctx, q, p, s, of.blocks, reading)
			if err != nil {
				return 0, err
			}
			if done {
				s.Ahead.Deltas += of.last - of.first + 1
				continue
			}
			of.first, of.last = max(of.first, p.first), min(of.last, p.last)
			s.Ahead.Missing += of.last - of.first + 1
		}
		left, err := reading.Back(ctx, of.first, of.last, rest, s.add)
		if err != nil {
			return 0, err
		}
		if left >= of.first {
			return left, nil
		}
	}
	return p.first - 1, nil
}

// counted adds counts made ahead. It returns false, and adds nothing, if they are gone.
func (c *Counter) counted(ctx context.Context, q Query, p progress, s *Strip, blocks []activity.Block, reading *marks.Reading) (bool, error) {
	selection := activity.Selection{Width: p.width(), Streams: reading.Streams(), Namespaces: q.Filter.Namespaces, Manager: q.Filter.Manager}
	part, since := newStrip(p, s.Classes), p.since.UnixMilli()
	err := activity.Read(ctx, c.Record, blocks, selection, func(n activity.Count) {
		if n.At.UnixMilli() >= since {
			part.addCount(n)
		}
	})
	if errors.Is(err, activity.ErrChanged) {
		return false, nil
	}
	if err == nil {
		s.merge(part)
	}
	return err == nil, err
}

func (s *Strip) addCount(n activity.Count) {
	ms := n.At.UnixMilli()
	if ms >= s.To {
		return
	}
	i := slices.Index(s.Classes, n.Class)
	switch {
	case i >= 0:
		s.tally(i, ms, n.N, n.FirstSeq, n.LastSeq)
	case n.Class == class.Heartbeat && ms >= s.From:
		s.Hidden[class.Heartbeat] += n.N
	}
}

// tally adds deltas of a class that occurred at a time, or within the minute or hour that begins then.
func (s *Strip) tally(class int, ms, n, first, last int64) {
	if ms < s.From {
		s.Before[s.Classes[class]] += n
		return
	}
	s.put(class, (ms-s.From)/s.StepMS, n, first, last)
}

func (s *Strip) put(class int, bar, n, first, last int64) {
	s.Counts[class][bar] += n
	if s.FirstSeq[bar] == 0 || first < s.FirstSeq[bar] {
		s.FirstSeq[bar] = first
	}
	s.LastSeq[bar] = max(s.LastSeq[bar], last)
}

func (s *Strip) merge(part *Strip) {
	for bar := range part.FirstSeq {
		if part.FirstSeq[bar] == 0 {
			continue
		}
		for class := range part.Counts {
			s.put(class, int64(bar), part.Counts[class][bar], part.FirstSeq[bar], part.LastSeq[bar])
		}
	}
	for of, n := range part.Hidden {
		s.Hidden[of] += n
	}
	for of, n := range part.Before {
		s.Before[of] += n
	}
}

// explain sets the text of an answer that is slower for lack of counts.
func (s *Strip) explain(q Query) {
	if !countable(q.Filter) {
		s.Ahead = nil
		return
	}
	if s.Ahead.Missing > manyMissing || s.Ahead.Missing > 0 && s.Next != "" {
		s.Ahead.Text = fmt.Sprintf("%d deltas here are not counted ahead, and are read one by one, which takes longer. A recorder counts them while it runs.", s.Ahead.Missing)
	}
}
