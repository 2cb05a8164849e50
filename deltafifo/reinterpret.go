package deltafifo

import (
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// Compare holds objects of a list against the last state of each, and enqueues a Sync delta with delta.SourceSchema for those that have another content at the same
// resource version. It is no list of the stream: it moves no position, nothing is taken for new, changed or gone by it, since the watch tells
// that, and it may come between events of the watch and the pages of a list. It gives how many differ, and blocks until there is room. An error is also that a part of the
// stream is on disk only: try again when it is drained.
func (f *FIFO) Compare(list []any) (different int, err error) {
	if err := f.useTails(); err != nil {
		return 0, err
	}
	defer f.releaseTails()
	for _, obj := range list {
		found, err := f.compareOne(obj)
		if err != nil {
			return different, err
		}
		if found {
			different++
		}
	}
	return different, nil
}

func (f *FIFO) compareOne(obj any) (different bool, err error) {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	key, obj, err := f.prepare(obj)
	if err != nil {
		return false, err
	}
	before, exists, err := f.tail(key)
	if err != nil || !exists || compare(before, obj) != reinterpreted {
		return false, err
	}
	return true, f.enqueue(key, cache.Sync, delta.SourceSchema, obj, "")
}

// Compared enqueues a marker that says that all objects were compared with what is served under a schema.
func (f *FIFO) Compared(schema string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.enqueueWith(f.attach(), "", Entry{Marker: &delta.Marker{Kind: delta.Compared, Detail: schema}, Bytes: entryBytes})
}
