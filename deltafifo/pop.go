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
//   - The delta leaves only if process succeeds. Otherwise Pop returns the error with the delta, and the next Pop gets the
//     same one (I1). A caller that tries again should wait a little.
//   - Process runs without a lock. It may take its time and call the queue, except for Pop on the same stream, which waits
//     for it.
//   - Pop passes over bookmarks and markers, which client-go's queue does not have.
//
// It returns cache.ErrFIFOClosed when the FIFO is closed and nothing is left of the stream.
func (f *FIFO) Pop(process cache.PopProcessFunc) (interface{}, error) {
	n, initial, err := f.beginPop()
	if err != nil {
		return nil, err
	}
	processed := (*node)(nil)
	defer func() { f.endPop(processed) }()
	var deltas any = cache.Deltas{n.entry.Delta}
	if err = process(deltas, initial); err == nil {
		processed = n
	}
	return deltas, err
}

// PopBatch is Pop for up to 1,000 deltas at once, of different keys. Deltas of the first list are not mixed with later
// ones. A single delta goes to processSingle. If the function fails, none of the deltas leave.
func (f *FIFO) PopBatch(processBatch cache.ProcessBatchFunc, processSingle cache.PopProcessFunc) error {
	_, initial, err := f.beginPop()
	if err != nil {
		return err
	}
	processed := (*node)(nil)
	defer func() { f.endPop(processed) }()
	deltas, last := f.collect()
	if len(deltas) == 1 {
		err = processSingle(cache.Deltas(deltas), initial)
	} else {
		err = processBatch(deltas, initial)
	}
	if err == nil {
		processed = last
	}
	return err
}

// beginPop waits for its turn and for a delta. initial tells that it is of the first list.
func (f *FIFO) beginPop() (first *node, initial bool, err error) {
	q, st := f.queue, f.stream
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.drainByLocked(drainByPop); err != nil {
		return nil, false, err
	}
	for {
		if !st.popping {
			f.passOverLocked()
			if st.first != nil {
				break
			}
			if f.closed || q.closed {
				return nil, false, cache.ErrFIFOClosed
			}
		}
		st.arrival.Wait()
	}
	st.popping = true
	f.takeLocked(st.first)
	return st.first, !f.syncedDone, nil
}

// collect takes the deltas that may go into one batch with the first, which is taken already, and gives the last node.
func (f *FIFO) collect() ([]cache.Delta, *node) {
	f.queue.mu.Lock()
	defer f.queue.mu.Unlock()
	most := maxPopBatch
	if f.initial > 0 {
		most = min(most, f.initial)
	}
	last := f.stream.first
	most = min(most, max(1, f.deltas))
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
		f.takeLocked(n)
		last = n
	}
	return deltas, last
}

func (f *FIFO) takeLocked(n *node) {
	n.handed = true
	f.queue.fresh.sub(n)
}

// endPop lets the stream's nodes up to the last processed one leave, and takes back those that were taken if none was.
func (f *FIFO) endPop(last *node) {
	q, st := f.queue, f.stream
	q.mu.Lock()
	defer q.mu.Unlock()
	st.popping = false
	for left := last == nil; !left; {
		left = st.first == last
		q.leaveLocked(st.first)
	}
	for n := st.first; n != nil && n.handed; n = n.next {
		n.handed = false
		q.fresh.add(n)
	}
	q.admitLocked()
	f.passOverLocked()
	st.arrival.Broadcast()
}

// passOverLocked lets bookmarks and markers at the stream's head leave, and those in who wait for the room.
func (f *FIFO) passOverLocked() {
	for n := f.stream.first; n != nil && n.entry.Delta.Type == ""; n = f.stream.first {
		f.queue.leaveLocked(n)
		f.queue.admitLocked()
	}
}
