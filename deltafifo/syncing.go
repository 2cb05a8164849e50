package deltafifo

// syncing tells when the deltas of a FIFO's first list have left the queue: client-go's HasSynced. The queue's lock protects
// all that changes.
type syncing struct {
	name      string
	deltas    int // of the FIFO that are held
	populated bool
	initial   int // of the first list: how many deltas are still held
	over      bool
	done      chan struct{}
}

// Name is the name of the FIFO's options.
func (s *syncing) Name() string { return s.name }

// Done is closed when the FIFO has synced.
func (s *syncing) Done() <-chan struct{} { return s.done }

// populate notes that a list is in, of which so many deltas are held. Only the first one counts.
func (s *syncing) populate(initial int) {
	if !s.populated {
		s.populated, s.initial = true, initial
		s.check()
	}
}

// left counts a delta that has left the queue.
func (s *syncing) left() {
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
