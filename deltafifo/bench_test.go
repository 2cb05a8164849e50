package deltafifo

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// The benchmarks send the same decoded objects through this package's queue and through client-go's two, in one run.
// They measure the queue and the key function, which all three call.

// served represents an object as the recorder has it: metadata, and bytes of a known size.
type served struct {
	metav1.ObjectMeta
	size int
}

func (s *served) Size() int { return s.size }

func (s *served) GetObjectMeta() metav1.Object { return &s.ObjectMeta }

// objectsServed is the number of objects that all producers together serve.
const objectsServed = 4096

func servedObjects() []any {
	objs := make([]any, objectsServed)
	for i := range objs {
		objs[i] = &served{size: 2048, ObjectMeta: metav1.ObjectMeta{
			Namespace: fmt.Sprintf("namespace-%d", i%50), Name: fmt.Sprintf("object-%d", i), UID: "uid", ResourceVersion: strconv.Itoa(i),
		}}
	}
	return objs
}

type nothingKnown struct{}

func (nothingKnown) ListKeys() []string                 { return nil }
func (nothingKnown) GetByKey(string) (any, bool, error) { return nil, false, nil }

// consumer takes at least one delta and returns how many it took.
type consumer func() (int, error)

func popper(q cache.Queue) consumer {
	return func() (int, error) {
		deltas, err := q.Pop(func(any, bool) error { return nil })
		if err != nil {
			return 0, err
		}
		return len(deltas.(cache.Deltas)), nil // DeltaFIFO gives all deltas of a key at once.
	}
}

func batchPopper(q cache.QueueWithBatch) consumer {
	return func() (n int, err error) {
		err = q.PopBatch(
			func(d []cache.Delta, _ bool) error { n = len(d); return nil },
			func(any, bool) error { n = 1; return nil })
		return n, err
	}
}

func committer(q *Queue) consumer {
	return func() (int, error) {
		entries, err := q.Next(context.Background(), 2000, 0, 0)
		q.Done(len(entries))
		return len(entries), err
	}
}

func drain(b *testing.B, consume consumer, n int) {
	b.Helper()
	for got := 0; got < n; {
		took, err := consume()
		if err != nil {
			b.Error(err)
			return
		}
		got += took
	}
}

// realFIFO is configured as client-go configures the queue of an informer, without metrics.
func realFIFO() *cache.RealFIFO {
	return cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
		KeyFunction: cache.MetaNamespaceKeyFunc, AtomicEvents: true, UnlockWhileProcessing: true, EmitDeltaTypeBookmark: true,
	})
}

// deltaFIFO is configured in the same way, as informers used it earlier and still use it on request.
func deltaFIFO() *cache.DeltaFIFO {
	return cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{KnownObjects: nothingKnown{}, EmitDeltaTypeReplaced: true})
}

type contender struct {
	name  string
	start func() (cache.ReflectorStore, consumer)
}

func contenders() []contender {
	ours := func(consume func(*Queue, *FIFO) consumer) func() (cache.ReflectorStore, consumer) {
		return func() (cache.ReflectorStore, consumer) {
			q := New(Options{})
			f := q.FIFO(FIFOOptions{KnownObjects: nothingKnown{}})
			return f, consume(q, f)
		}
	}
	return []contender{
		{"RealFIFO/Pop", func() (cache.ReflectorStore, consumer) { f := realFIFO(); return f, popper(f) }},
		{"DeltaFIFO/Pop", func() (cache.ReflectorStore, consumer) { f := deltaFIFO(); return f, popper(f) }},
		{"ours/Pop", ours(func(_ *Queue, f *FIFO) consumer { return popper(f) })},
		{"RealFIFO/PopBatch", func() (cache.ReflectorStore, consumer) { f := realFIFO(); return f, batchPopper(f) }},
		{"ours/PopBatch", ours(func(_ *Queue, f *FIFO) consumer { return batchPopper(f) })},
		{"ours/Next", ours(func(q *Queue, _ *FIFO) consumer { return committer(q) })},
	}
}

// These constants make the runs of BenchmarkThroughput alike, and equal for all queues.
const (
	// most is how many deltas wait at most. This package's queue has a bound, and client-go's have none. Without one
	// bound for all, the scheduler would choose which queue falls behind, and how much memory is allocated and
	// collected for that.
	most = 8192
	// ballast is memory that no code reads. With it, the garbage collector runs as often as in a process of that size.
	// Without it, a nearly empty heap would trigger a run whenever it has doubled.
	ballast = 64 << 20
	// warm is how many deltas precede the measured ones. They touch the memory that is allocated between two
	// collections.
	warm = ballast / 256
)

// BenchmarkThroughput: some producers feed one queue, while one consumer drains it.
func BenchmarkThroughput(b *testing.B) {
	objs := servedObjects()
	for _, producers := range []int{1, 8} {
		for _, c := range contenders() {
			b.Run(fmt.Sprintf("producers=%d/%s", producers, c.name), func(b *testing.B) {
				store, consume := c.start()
				held := make([]byte, ballast)
				through := func(n int) {
					for left := n; left > 0; left -= most {
						each := share(min(left, most), producers)
						wg := produce(b, store, objs, producers, each)
						drain(b, consume, each*producers)
						wg.Wait()
					}
				}
				through(warm)
				b.ReportAllocs()
				b.ResetTimer()
				before := cpu(b)
				through(b.N)
				b.ReportMetric(float64(cpu(b)-before)/float64(b.N), "cpu-ns/op")
				runtime.KeepAlive(held)
			})
		}
	}
}

// BenchmarkStreams: eight streams feed one queue through a FIFO each; client-go needs, and gets, a queue for each.
func BenchmarkStreams(b *testing.B) {
	const streams = 8
	objs := servedObjects()
	b.Run("RealFIFO/PopBatch", func(b *testing.B) {
		b.ReportAllocs()
		var wg sync.WaitGroup
		for range streams {
			f := realFIFO()
			wg.Go(func() { feed(b, f, objs, share(b.N, streams)) })
			wg.Go(func() { drain(b, batchPopper(f), share(b.N, streams)) })
		}
		wg.Wait()
	})
	b.Run("ours/Next", func(b *testing.B) {
		b.ReportAllocs()
		q := New(Options{})
		var wg sync.WaitGroup
		for range streams {
			f := q.FIFO(FIFOOptions{})
			wg.Go(func() { feed(b, f, objs, share(b.N, streams)) })
		}
		drain(b, committer(q), share(b.N, streams)*streams)
		wg.Wait()
	})
}

// BenchmarkBacklog fills a queue first and drains it then.
func BenchmarkBacklog(b *testing.B) {
	objs := servedObjects()
	const backlog = 50_000
	for _, c := range contenders() {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				store, consume := c.start()
				feed(b, store, objs, backlog)
				drain(b, consume, backlog)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/backlog, "ns/delta")
		})
	}
}

func share(n, of int) int { return (n + of - 1) / of }

// cpu is what the process has used so far, in nanoseconds.
func cpu(b *testing.B) int64 {
	b.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		b.Fatal(err)
	}
	return used.Utime.Nano() + used.Stime.Nano()
}

// produce gives each producer its own objects, as each informer has its own. If several producers sent deltas of one key at
// once, a queue that merges them would count one.
func produce(b testing.TB, store cache.ReflectorStore, objs []any, producers, each int) *sync.WaitGroup {
	b.Helper()
	var wg sync.WaitGroup
	own := len(objs) / producers
	for p := range producers {
		wg.Go(func() { feed(b, store, objs[p*own:(p+1)*own], each) })
	}
	return &wg
}

// counted counts how often a queue would receive each object.
type counted struct {
	cache.ReflectorStore
	mu    sync.Mutex // protects times
	times map[any]int
}

func (s *counted) Update(object any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.times[object]++
	return nil
}

func TestProducersOfTheBenchmarkShareNoObjects(t *testing.T) {
	objs := servedObjects()
	for _, producers := range []int{1, 8} {
		store := &counted{times: make(map[any]int)}
		produce(t, store, objs, producers, len(objs)/producers).Wait()
		if len(store.times) != objectsServed {
			t.Errorf("%d producers served %d objects, and not all", producers, len(store.times))
		}
	}
}

func feed(b testing.TB, store cache.ReflectorStore, objs []any, n int) {
	b.Helper()
	for i := range n {
		if err := store.Update(objs[i%len(objs)]); err != nil {
			b.Error(err)
		}
	}
}
