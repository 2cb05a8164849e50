package deltafifo

// syncing implements client-go's HasSynced: it notes when the deltas of a FIFO's first list have left the queue. The
// queue's lock protects all fields that change.
type syncing struct {
	name      string
	deltas    int // deltas of the FIFO that are held
	populated bool
	initial   int // deltas of the first list that are still held
	over      bool
	done      chan struct{}
}

// Name returns the name of the FIFO's options.
func (s *syncing) Name() string { return s.name }

// Done is closed when the FIFO has synced.
func (s *syncing) Done() <-chan struct{} { return s.done }

// populate notes that a list is complete, and how many deltas are held. Only the first call counts.
func (s *syncing) populate(initial int) {
	if !s.populated {
		s.populated, s.initial = true, initial
		s.check()
	}
}

// removed counts a delta that the queue has removed.
func (s *syncing) removed() {
	s.deltas--
	if s.initial > 0 {
		s.initial--
		s.check()
	}
}

func (s *syncing) check() {
	if s.initial == 0 && !s.over {
		s.over = true
		close(s.done)
	}
}
