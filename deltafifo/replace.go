package deltafifo

import (
	"errors"

	"github.com/kuberewind/kuberewind/delta"
)

var errNotReplacing = errors.New("deltafifo: a page or the end of a list without BeginReplace")

// Replace receives a whole list, from a reflector that does not list page by page.
func (f *FIFO) Replace(list []interface{}, resourceVersion string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	defer f.lists.abort() // This has no effect after the end of the list.
	if err := f.lists.beginWhole(); err != nil {
		return err
	}
	if err := f.lists.page(list, resourceVersion); err != nil {
		return err
	}
	return f.lists.end(resourceVersion, &f.interruption)
}

// BeginReplace announces a list: its cause, and the position before it. It aborts a list that has not ended.
func (f *FIFO) BeginReplace(cause delta.Cause, detail, fromResourceVersion string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.lists.begin(cause, detail, fromResourceVersion)
}

// ReplacePage receives a page. All pages belong to one list, at one resource version. Objects that differ from their
// recorded state become Sync deltas. If the UID differs, an inferred Deleted of the former object comes first. If one
// object of the page cannot be transformed or has no key, nothing of the page is enqueued. It blocks until there is
// room.
func (f *FIFO) ReplacePage(list []interface{}, resourceVersion string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.lists.page(list, resourceVersion)
}

// Unreadable says that the list has an object that could not be read: it has not vanished. If the key is "", it may be any
// object, and then no object counts as vanished.
func (f *FIFO) Unreadable(key string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.lists.unread(key)
}

// EndReplace says that the list is complete. Objects that were not on it become inferred Deleted deltas, and a marker
// moves the position to the list's resource version. It blocks until there is room. After an error it may be called
// again.
func (f *FIFO) EndReplace(resourceVersion string) error {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	return f.lists.end(resourceVersion, &f.interruption)
}

// AbortReplace aborts a list. The deltas of its pages stay, because the objects existed. No object counts as vanished,
// and the position does not move.
func (f *FIFO) AbortReplace() {
	f.stream.feed.Lock()
	defer f.stream.feed.Unlock()
	f.lists.abort()
}

// lists receives the lists of a FIFO, one after the other. The stream's feed protects it.
type lists struct {
	feeder *feeder
	tail   *Tail
	rules  string

	replacing *replacement // the list under way
}

// beginWhole begins a list whose cause the caller does not know.
func (l *lists) beginWhole() error {
	from, _ := l.tail.position()
	cause := delta.CauseFirstList
	if from != "" || l.isPopulated() {
		cause = delta.CauseRelist
	}
	return l.begin(cause, "", from)
}

func (l *lists) begin(cause delta.Cause, detail, from string) error {
	l.abort()
	_, at := l.tail.position()
	r := newReplacement(l.feeder, l.tail, delta.Marker{Kind: delta.Replaced, Cause: cause, Detail: detail, FromRV: from, FromTime: at, Rules: l.rules})
	// The list can be compared with memory only.
	if err := l.tail.beginList(); err != nil {
		return err
	}
	l.replacing = r
	return nil
}

func (l *lists) page(list []any, resourceVersion string) error {
	if l.replacing == nil {
		return errNotReplacing
	}
	return l.replacing.page(list, resourceVersion)
}

func (l *lists) unread(key string) error {
	if l.replacing == nil {
		return errNotReplacing
	}
	l.replacing.unread[key] = struct{}{}
	return nil
}

// end also notes that the stream proceeds, because the marker of the list says so.
func (l *lists) end(resourceVersion string, said *interruption) error {
	if l.replacing == nil {
		return errNotReplacing
	}
	if err := l.replacing.end(resourceVersion); err != nil {
		return err
	}
	*said = interruption{said: true}
	l.abort()
	l.populate()
	return nil
}

func (l *lists) abort() {
	l.replacing = nil
	l.feeder.queue.mu.Lock()
	defer l.feeder.queue.mu.Unlock()
	l.tail.endListLocked()
}

func (l *lists) isPopulated() bool {
	l.feeder.queue.mu.Lock()
	defer l.feeder.queue.mu.Unlock()
	return l.feeder.syncing.populated
}

func (l *lists) populate() {
	l.feeder.queue.mu.Lock()
	defer l.feeder.queue.mu.Unlock()
	l.feeder.syncing.populate(l.feeder.syncing.deltas)
}
