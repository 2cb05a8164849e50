package feed

// backlog is the newest events of a Feed, which its Readers share. The Feed's mu protects all but most.
type backlog struct {
	most  int64 // bytes
	kept  []*Event
	first int64 // number of kept[0]: events are numbered without holes
	after int64 // kept holds all deltas after this seq,
	ends  int64 // and the ends of all gaps after this commit
	bytes int64
}

// begin has it keep the deltas after a seq, and the ends of gaps after a commit.
func (b *backlog) begin(seq, batch int64) {
	b.first += int64(len(b.kept))
	b.kept, b.bytes = nil, 0
	b.after, b.ends = seq, batch
}

// append adds the newest events, and drops what is too old.
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
		b.kept[dropped] = nil // or the array holds it
	}
	b.kept, b.first = b.kept[dropped:], b.first+int64(dropped)
}

// next is the number that the next event will have.
func (b *backlog) next() int64 { return b.first + int64(len(b.kept)) }

// numbered gives a kept event by its number.
func (b *backlog) numbered(n int64) *Event { return b.kept[n-b.first] }

// since is the number of the first event that comes after a seq, or ends a gap after a commit.
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
