package deltafifo

import (
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// Compare compares objects of a list with the last state of each. It enqueues a Sync delta with delta.SourceSchema for
// each object with other content at the same resource version. It returns how many differ, and blocks until there is
// room.
//
// This is no list of the stream. It moves no position, and treats no object as new, changed or gone, because the watch
// shows that. It may come between events of the watch and the pages of a list. It returns ErrOnDisk while a part of the
// stream is on disk only: try again when that part is drained.
func (t *Tail) Compare(list []any) (different int, err error) {
	if err := t.use(); err != nil {
		return 0, err
	}
	defer t.release()
	for _, obj := range list {
		found, err := t.compareOne(obj)
		if err != nil {
			return different, err
		}
		if found {
			different++
		}
	}
	return different, nil
}

func (t *Tail) compareOne(obj any) (different bool, err error) {
	f := t.feeder
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	key, obj, err := f.prepare(obj)
	if err != nil {
		return false, err
	}
	before, exists, err := t.of(key)
	if err != nil || !exists || compare(before, obj) != reinterpreted {
		return false, err
	}
	return true, f.enqueue(key, cache.Sync, delta.SourceSchema, obj, "")
}

// Compared enqueues a marker that says that all objects were compared with a list under a schema.
func (t *Tail) Compared(schema string) error {
	f := t.feeder
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.mark(&delta.Marker{Kind: delta.Compared, Detail: schema}, "")
}
