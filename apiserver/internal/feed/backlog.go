package feed

// backlog holds the newest events of a Feed, which its Readers share. The Feed's mu protects all fields except most.
type backlog struct {
	most  int64 // bytes
	kept  []*Event
	first int64 // number of kept[0]; the numbers have no gaps
	after int64 // kept holds all deltas after this seq,
	ends  int64 // and the ends of all gaps after this commit
	bytes int64
}

// begin drops all events, and keeps the deltas after a seq and the ends of gaps after a commit.
func (b *backlog) begin(seq, batch int64) {
	b.first += int64(len(b.kept))
	b.kept, b.bytes = nil, 0
	b.after, b.ends = seq, batch
}

// append adds the newest events, and drops the oldest beyond the bound.
func (b *backlog) append(events []*Event) {
	b.kept = append(b.kept, events...)
	for _, e := range events {
		b.bytes += e.size
	}
	dropped := 0
	for ; b.bytes > b.most; dropped++ {
		e := b.kept[dropped]
		b.bytes -= e.size
		b.after, b.ends = e.place(b.ends)
		b.kept[dropped] = nil // otherwise the array would keep it in memory
	}
	b.kept, b.first = b.kept[dropped:], b.first+int64(dropped)
}

// next returns the number of the next event.
func (b *backlog) next() int64 { return b.first + int64(len(b.kept)) }

// numbered returns a kept event by its number.
func (b *backlog) numbered(n int64) *Event { return b.kept[n-b.first] }

// since returns the number of the first event that comes after a seq, or ends a gap after a commit.
func (b *backlog) since(seq, batch int64) int64 {
	number := b.first
	for _, e := range b.kept {
		if e.Relist == nil && e.Seq > seq || e.Relist != nil && e.Relist.Batch > batch {
			break
		}
		number++
	}
	return number
}
