package deltafifo

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// Resync enqueues a Sync delta, a keyframe, for every known object of which nothing is held, and that FIFOOptions.ResyncNeeded does
// not leave out. Watch events may come in
// between: it takes its turn with them object by object. It blocks until there is room. At the first object that cannot
// be had it stops with an error; the keyframes before it stay. It is ErrOnDisk, before anything, where a part of the stream is on disk only.
func (f *FIFO) Resync() error {
	if f.known == nil {
		return nil
	}
	if err := f.useTails(); err != nil {
		return err
	}
	defer f.releaseTails()
	for _, key := range f.known.ListKeys() {
		if err := f.resyncOne(key); err != nil {
			return err
		}
	}
	return nil
}

func (f *FIFO) resyncOne(key string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	if _, _, pending := f.pending(key); pending {
		return nil
	}
	known, exists, err := f.getKnown(key)
	if err != nil || !exists || f.needed != nil && !f.needed(known) {
		return err
	}
	obj, err := whole(known)
	if err != nil {
		return fmt.Errorf("object of known %s: %w", key, err)
	}
	return f.enqueue(key, cache.Sync, delta.SourceResync, obj, "")
}

// whole gives the object of a known value, which may be no more than its identity and digest.
func whole(known any) (any, error) {
	if k, ok := known.(interface{ Object() (any, error) }); ok {
		return k.Object()
	}
	return known, nil
}
