package reflector

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/delta"
)

// call is one call of a store.
type call struct {
	method  string // add update delete bookmark begin page end abort interrupted resumed resync
	objects []metav1.Object
	rv      string
	cause   delta.Cause
	detail  string
}

// String returns a call in short: "add a@2", "begin expired from 7", "page a@1 b@2".
func (c call) String() string {
	parts := []string{c.method}
	for _, object := range c.objects {
		parts = append(parts, object.GetName()+"@"+object.GetResourceVersion())
	}
	if c.cause != "" {
		parts = append(parts, string(c.cause))
	}
	if c.method == "begin" && c.rv != "" {
		parts = append(parts, "from")
	}
	if c.rv != "" && c.method != "page" {
		parts = append(parts, c.rv)
	}
	return strings.Join(parts, " ")
}

// ledger is a store that keeps its calls. It implements every interface that the reflector knows.
type ledger struct {
	mu       sync.Mutex
	accepted []call
	versions []string
	// decide, if set, runs before a call is accepted; it may block.
	decide func(call) error
}

var (
	_ cache.ReflectorStore         = (*ledger)(nil)
	_ cache.ReflectorBookmarkStore = (*ledger)(nil)
	_ cache.ResourceVersionUpdater = (*ledger)(nil)
	_ PagedStore                   = (*ledger)(nil)
	_ InterruptStore               = (*ledger)(nil)
	_ UnreadableStore              = (*ledger)(nil)
)

func (l *ledger) got(c call) error {
	if l.decide != nil {
		if err := l.decide(c); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.accepted = append(l.accepted, c)
	return nil
}

// calls returns the accepted calls so far, in short.
func (l *ledger) calls() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	short := make([]string, 0, len(l.accepted))
	for _, c := range l.accepted {
		short = append(short, c.String())
	}
	return short
}

// find returns the first accepted call of a method.
func (l *ledger) find(method string) call {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.accepted, func(c call) bool { return c.method == method }); i >= 0 {
		return l.accepted[i]
	}
	return call{}
}

func objectsOf(items ...any) []metav1.Object {
	objects := make([]metav1.Object, 0, len(items))
	for _, item := range items {
		object, err := meta.Accessor(item)
		if err != nil {
			panic(fmt.Sprintf("store was given %T: %v", item, err))
		}
		objects = append(objects, object)
	}
	return objects
}

func (l *ledger) Add(o any) error    { return l.got(call{method: "add", objects: objectsOf(o)}) }
func (l *ledger) Update(o any) error { return l.got(call{method: "update", objects: objectsOf(o)}) }
func (l *ledger) Delete(o any) error { return l.got(call{method: "delete", objects: objectsOf(o)}) }
func (l *ledger) Resync() error      { return l.got(call{method: "resync"}) }
func (l *ledger) Resumed() error     { return l.got(call{method: "resumed"}) }
func (l *ledger) AbortReplace()      { _ = l.got(call{method: "abort"}) }

// Unreadable puts the key in the place of a cause.
func (l *ledger) Unreadable(key string) error {
	return l.got(call{method: "unread", cause: delta.Cause(key)})
}

func (l *ledger) Bookmark(rv string) error   { return l.got(call{method: "bookmark", rv: rv}) }
func (l *ledger) EndReplace(rv string) error { return l.got(call{method: "end", rv: rv}) }

func (l *ledger) Replace(items []any, rv string) error {
	return l.got(call{method: "replace", objects: objectsOf(items...), rv: rv})
}

func (l *ledger) BeginReplace(cause delta.Cause, detail, from string) error {
	return l.got(call{method: "begin", cause: cause, detail: detail, rv: from})
}

func (l *ledger) ReplacePage(items []any, rv string) error {
	return l.got(call{method: "page", objects: objectsOf(items...), rv: rv})
}

func (l *ledger) Interrupted(cause delta.Cause, detail string) error {
	return l.got(call{method: "interrupted", cause: cause, detail: detail})
}

func (l *ledger) UpdateResourceVersion(rv string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.versions = append(l.versions, rv)
}
