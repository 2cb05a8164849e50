package deltafifo

import (
	"k8s.io/client-go/tools/cache"
)

// maxPopBatch bounds the deltas of a PopBatch, as client-go does.
const maxPopBatch = 1000

// Pop waits for the stream's oldest delta and processes it: process gets a cache.Deltas with that one delta.
//
// It differs from client-go in three ways.
//
//   - The queue removes the delta only if process succeeds. Otherwise Pop returns the error with the delta, and the
//     next Pop gets the same one (I1). A caller that tries again should wait a little.
//   - Process runs without a lock. It may take its time and call the queue, except for Pop on the same stream, which
//     waits for it.
//   - Pop passes over bookmarks and markers, which client-go's queue does not have.
//
// It returns cache.ErrFIFOClosed when the FIFO is closed and no entry of the stream is left.
func (f *FIFO) Pop(process cache.PopProcessFunc) (interface{}, error) {
	p, err := beginPop(f.feeder)
	if err != nil {
		return nil, err
	}
	processed := (*node)(nil)
	defer func() { p.end(processed) }()
	var deltas any = cache.Deltas{p.first.entry.Delta}
	if err = process(deltas, p.initial); err == nil {
		processed = p.first
	}
	return deltas, err
}

// PopBatch is Pop for up to 1,000 deltas at once, of different keys. Deltas of the first list are not mixed with later
// ones. A single delta goes to processSingle. If the function fails, all the deltas stay.
func (f *FIFO) PopBatch(processBatch cache.ProcessBatchFunc, processSingle cache.PopProcessFunc) error {
	p, err := beginPop(f.feeder)
	if err != nil {
		return err
	}
	processed := (*node)(nil)
	defer func() { p.end(processed) }()
	deltas, last := p.collect()
	if len(deltas) == 1 {
		err = processSingle(cache.Deltas(deltas), p.initial)
	} else {
		err = processBatch(deltas, p.initial)
	}
	if err == nil {
		processed = last
	}
	return err
}

// pop is a running Pop: it has taken the stream's first delta.
type pop struct {
	feeder  *feeder
	first   *node
	initial bool // the delta belongs to the first list
}

// beginPop waits for its turn and for a delta.
func beginPop(f *feeder) (pop, error) {
	q, st := f.queue, f.stream
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.drainByLocked(drainByPop); err != nil {
		return pop{}, err
	}
	for {
		if !st.popping {
			q.passOverLocked(st)
			if st.first != nil {
				break
			}
			if f.closed || q.closed {
				return pop{}, cache.ErrFIFOClosed
			}
		}
		st.arrival.Wait()
	}
	st.popping = true
	q.backlog.memory.take(st.first)
	return pop{f, st.first, !f.syncing.over}, nil
}

// collect takes the deltas that may go into one batch with the first, and returns them with the last node. beginPop has
// taken the first already.
func (p *pop) collect() ([]cache.Delta, *node) {
	q, syncing := p.feeder.queue, &p.feeder.syncing
	q.mu.Lock()
	defer q.mu.Unlock()
	most := maxPopBatch
	if syncing.initial > 0 {
		most = min(most, syncing.initial)
	}
	last := p.first
	most = min(most, max(1, syncing.deltas))
	deltas := append(make([]cache.Delta, 0, most), last.entry.Delta)
	keys := make(map[string]struct{}, most)
	keys[last.key] = struct{}{}
	for n := last.next; n != nil && len(deltas) < most; n = n.next {
		if n.entry.Delta.Type != "" {
			if _, again := keys[n.key]; again {
				break
			}
			keys[n.key] = struct{}{}
			deltas = append(deltas, n.entry.Delta)
		}
		q.backlog.memory.take(n)
		last = n
	}
	return deltas, last
}

// end removes the stream's nodes up to the last processed one. If none was processed, it takes back the nodes that were
// taken.
func (p *pop) end(last *node) {
	q, st := p.feeder.queue, p.feeder.stream
	q.mu.Lock()
	defer q.mu.Unlock()
	st.popping = false
	for left := last == nil; !left; {
		left = st.first == last
		q.backlog.remove(st.first)
	}
	for n := st.first; n != nil && n.handed; n = n.next {
		q.backlog.memory.takeBack(n)
	}
	q.admitLocked()
	q.passOverLocked(st)
	st.arrival.Broadcast()
}

// passOverLocked removes bookmarks and markers at the stream's head, and admits waiting calls to the free room.
func (q *Queue) passOverLocked(st *stream) {
	for n := st.first; n != nil && n.entry.Delta.Type == ""; n = st.first {
		q.backlog.remove(n)
		q.admitLocked()
	}
}
