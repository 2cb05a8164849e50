package deltafifo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// object is an object with identity and content.
type object struct {
	name, uid, rv, body string
	size                int
}

func (o *object) GetUID() types.UID          { return types.UID(o.uid) }
func (o *object) GetResourceVersion() string { return o.rv }
func (o *object) Size() int                  { return o.size }
func (o *object) Digest() (d [16]byte)       { copy(d[:], o.body); return d }
func (o *object) String() string             { return fmt.Sprintf("%s/%s@%s=%s", o.name, o.uid, o.rv, o.body) }

func obj(name, uid, rv string) *object {
	return &object{name: name, uid: uid, rv: rv, body: "body-" + rv}
}

var errNoKey = errors.New("no key")

func nameOf(o any) (string, error) {
	switch o := o.(type) {
	case *object:
		return o.name, nil
	case item:
		return o.name, nil
	}
	return "", errNoKey
}

// known holds the objects that a consumer has committed.
type known struct {
	mu   sync.Mutex
	objs map[string]any
	err  error
}

func knowing(objs ...any) *known {
	k := &known{objs: map[string]any{}}
	for _, o := range objs {
		name, _ := nameOf(o)
		k.objs[name] = o
	}
	return k
}

func (k *known) ListKeys() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := make([]string, 0, len(k.objs))
	for key := range k.objs {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

func (k *known) GetByKey(key string) (any, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	o, ok := k.objs[key]
	return o, ok, k.err
}

func (k *known) commit(entries ...Entry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, e := range entries {
		apply(k.objs, e)
	}
}

func apply(objs map[string]any, e Entry) {
	tombstone, gone := e.Delta.Object.(cache.DeletedFinalStateUnknown)
	key := tombstone.Key
	switch {
	case e.Delta.Type == "":
		return
	case !gone:
		key, _ = nameOf(e.Delta.Object)
	}
	if e.Delta.Type == cache.Deleted {
		delete(objs, key)
	} else {
		objs[key] = e.Delta.Object
	}
}

// next hands out all entries that wait.
func next(t *testing.T, q *Queue) []Entry {
	t.Helper()
	if q.Stats().Entries == q.Stats().HandedOut {
		return nil
	}
	entries, err := q.Next(t.Context(), 0, 0, 0)
	require.NoError(t, err)
	return entries
}

// describe returns entries in short, without their times.
func describe(entries []Entry) []string {
	lines := []string{}
	for _, e := range entries {
		switch {
		case e.Bookmark():
			lines = append(lines, "bookmark >"+e.Position)
		case e.Marker != nil:
			m := e.Marker
			lines = append(lines, fmt.Sprintf("%s %s %s..%s +%d ~%d -%d =%d >%s", m.Kind, m.Cause, m.FromRV, m.ToRV,
				m.Appeared, m.Changed, m.Vanished, m.Unchanged, e.Position))
		default:
			lines = append(lines, fmt.Sprintf("%s %s %v >%s", e.Source, e.Delta.Type, e.Delta.Object, e.Position))
		}
	}
	return lines
}

func newFIFO(o Options, fo FIFOOptions) (*Queue, *FIFO) {
	q := New(o)
	if fo.KeyFunction == nil {
		fo.KeyFunction = nameOf
	}
	return q, q.FIFO(fo)
}

// call runs f and returns the channel for its result.
func call(f func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- f() }()
	return result
}

type nextResult struct {
	entries []Entry
	err     error
	after   time.Duration
}

func callNext(ctx context.Context, q *Queue, maxItems int, maxBytes int64, linger time.Duration) <-chan nextResult {
	result, start := make(chan nextResult, 1), time.Now()
	go func() {
		entries, err := q.Next(ctx, maxItems, maxBytes, linger)
		result <- nextResult{entries, err, time.Since(start)}
	}()
	return result
}

// elapse lets the clock of a synctest bubble advance.
func elapse(d time.Duration) { <-time.After(d) }
