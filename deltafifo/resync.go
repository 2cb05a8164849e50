package deltafifo

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// resync enqueues keyframes of the known objects that need one: see FIFO.Resync.
func (t *Tail) resync(needed func(known any) bool) error {
	if t.known == nil {
		return nil
	}
	if err := t.use(); err != nil {
		return err
	}
	defer t.release()
	for _, key := range t.known.ListKeys() {
		if err := t.resyncOne(key, needed); err != nil {
			return err
		}
	}
	return nil
}

func (t *Tail) resyncOne(key string, needed func(known any) bool) error {
	f := t.feeder
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	if _, _, pending := t.pending(key); pending {
		return nil
	}
	known, exists, err := t.getKnown(key)
	if err != nil || !exists || needed != nil && !needed(known) {
		return err
	}
	obj, err := whole(known)
	if err != nil {
		return fmt.Errorf("object of known %s: %w", key, err)
	}
	return f.enqueue(key, cache.Sync, delta.SourceResync, obj, "")
}

// whole returns the object of a known value. The value itself may be no more than identity and digest.
func whole(known any) (any, error) {
	if k, ok := known.(interface{ Object() (any, error) }); ok {
		return k.Object()
	}
	return known, nil
}
