package deltafifo

import (
	"errors"

	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// events receives the events of a watch. It rejects them while a list is under way (I1, I4).
type events struct {
	feeder *feeder
	lists  *lists
}

var errReplacing = errors.New("deltafifo: a list is under way; enqueue events after EndReplace or AbortReplace")

// observe enqueues a change of an object.
func (e *events) observe(t cache.DeltaType, obj any) error {
	f := e.feeder
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	if e.lists.replacing != nil {
		return errReplacing
	}
	key, obj, err := f.prepare(obj)
	if err != nil {
		return err
	}
	return f.enqueue(key, t, delta.SourceWatch, obj, positionOf(obj))
}

// moveTo enqueues a move of the position.
func (e *events) moveTo(resourceVersion string, source delta.Source) error {
	f := e.feeder
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	switch {
	case e.lists.replacing != nil:
		return errReplacing
	case resourceVersion == "":
		return nil
	}
	attached := f.attach()
	if attached == nil && f.queue.coalesce(f, resourceVersion, source) {
		return nil
	}
	return f.enqueueWith(attached, "", Entry{Position: resourceVersion, Source: source, Bytes: entryBytes})
}
