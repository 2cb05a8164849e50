package indexer

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

// These benchmarks put the same Pods into this package's Indexer and into client-go's. The latter holds them decoded,
// as the cache of a dynamic informer does.

var (
	benchedPods = flag.Int("pods", 5000, "how many Pods the benchmarks of an Indexer put into it")
	long        = flag.Duration("long", time.Second, "how long reads of several Pods at once last, instead of -test.benchtime")
)

// clientGo fills client-go's Indexer, from the same texts.
func clientGo(b *testing.B, docs []patch.Doc) cache.Indexer {
	b.Helper()
	x := cache.NewIndexer(cache.MetaNamespaceKeyFunc, BuiltIn())
	for _, doc := range docs {
		object := new(unstructured.Unstructured)
		require.NoError(b, object.UnmarshalJSON(doc))
		require.NoError(b, x.Add(object))
	}
	return x
}

func ours(b *testing.B, docs []patch.Doc) *Indexer {
	b.Helper()
	x := New(nil, BuiltIn(), Options{})
	for _, doc := range docs {
		require.NoError(b, x.Add(doc))
	}
	return x
}

// BenchmarkBuild makes an Indexer with all built-in indices of texts, and reports its memory.
func BenchmarkBuild(b *testing.B) {
	docs := realPods(b, *benchedPods)
	build := func(name string, filled func() cache.Indexer) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			var held uint64
			for b.Loop() {
				b.StopTimer()
				before := heap()
				b.StartTimer()
				x := filled()
				b.StopTimer()
				held = heap() - before
				runtime.KeepAlive(x)
				b.StartTimer()
			}
			b.ReportMetric(float64(held)/float64(*benchedPods), "held-B/object")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(*benchedPods), "ns/object")
		})
	}
	build("ours", func() cache.Indexer { return ours(b, docs) })
	build("client-go", func() cache.Indexer { return clientGo(b, docs) })
}

// A reading of the benchmark reads the i-th object or keys from an Indexer.
type reading func(x cache.Indexer, i int) error

// readings are the uses of an Indexer, for each of the two. They read the text of one object, one object or several
// that may be changed, one as it is stored, or keys.
func readings(keys, nodes []string) map[string]struct{ ours, theirs reading } {
	one := func(use func(object any) error) reading {
		return func(x cache.Indexer, i int) error {
			object, found, err := x.GetByKey(keys[i%len(keys)])
			if err == nil && !found {
				err = errors.New("an object is missing")
			}
			if err == nil {
				err = use(object)
			}
			return err
		}
	}
	several := func(use func(object any) error) reading {
		return func(x cache.Indexer, i int) error {
			objects, err := x.ByIndex(NodeIndex, nodes[i%len(nodes)])
			for _, object := range objects {
				err = errors.Join(err, use(object))
			}
			return err
		}
	}
	asKeys := func(x cache.Indexer, i int) error {
		_, err := x.IndexKeys(NodeIndex, nodes[i%len(nodes)])
		return err
	}
	asDoc := func(x cache.Indexer, i int) error {
		if _, found := x.(*Indexer).Doc(keys[i%len(keys)]); !found {
			return errors.New("an object is missing")
		}
		return nil
	}
	asIs := func(any) error { return nil }
	encoded := func(object any) error {
		_, err := object.(*unstructured.Unstructured).MarshalJSON()
		return err
	}
	copied := func(object any) error {
		runtime.KeepAlive(object.(*unstructured.Unstructured).DeepCopy())
		return nil
	}
	return map[string]struct{ ours, theirs reading }{
		"json":       {asDoc, one(encoded)},
		"object":     {one(asIs), one(copied)},
		"stored":     {asDoc, one(asIs)},
		"index-keys": {asKeys, asKeys},
		"objects":    {several(asIs), several(copied)},
	}
}

// BenchmarkRead reads one object after the other. This package makes each object for its caller. client-go returns the
// same object to all callers, who must copy it before they change it. This package stores a compressed text and unpacks
// it; client-go stores an object.
func BenchmarkRead(b *testing.B) {
	docs := realPods(b, *benchedPods)
	keys, nodes := make([]string, len(docs)), make([]string, len(docs))
	for i, doc := range docs {
		keys[i], nodes[i] = text(doc, "/metadata/namespace")+"/"+text(doc, "/metadata/name"), text(doc, "/spec/nodeName")
	}
	own := sync.OnceValue(func() cache.Indexer { return ours(b, docs) })
	theirs := sync.OnceValue(func() cache.Indexer { return clientGo(b, docs) })
	all := readings(keys, nodes)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		benchmark := benchmarkRead
		if name == "objects" {
			benchmark = benchmarkLong
		}
		benchmark(b, name+"/ours", own, all[name].ours)
		benchmark(b, name+"/client-go", theirs, all[name].theirs)
	}
}

func benchmarkRead(b *testing.B, name string, indexer func() cache.Indexer, read reading) {
	b.Helper()
	b.Run(name+"/readers=1", func(b *testing.B) {
		x := indexer()
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			if err := read(x, i); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run(name+"/readers=8", func(b *testing.B) {
		x := indexer()
		b.ReportAllocs()
		b.ResetTimer()
		if _, err := readAtOnce(8, share(b.N, 8), func(i int) error { return read(x, i) }); err != nil {
			b.Fatal(err)
		}
	})
}

// benchmarkLong is the same for a read that takes a millisecond. -test.benchtime, which is the same for all, may allow
// too few of these reads for a figure. So benchmarkLong runs for as long as -long says.
func benchmarkLong(b *testing.B, name string, indexer func() cache.Indexer, read reading) {
	b.Helper()
	for _, readers := range []int{1, 8} {
		b.Run(fmt.Sprintf("%s/readers=%d", name, readers), func(b *testing.B) {
			x := indexer()
			b.ResetTimer()
			started := time.Now()
			n, err := readAtOnce(readers, func(_, i int) bool { return i == 0 || time.Since(started) < *long }, func(i int) error { return read(x, i) })
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/op")
		})
	}
}

// share divides n reads among readers.
func share(n, readers int) (more func(reader, i int) bool) {
	return func(reader, i int) bool { return reader+i*readers < n }
}

// readAtOnce runs so many readers at once until more returns false, on any number of processors. b.RunParallel would
// start a multiple of the processors. Each reader begins with the first object. readAtOnce returns the number of reads.
func readAtOnce(readers int, more func(reader, i int) bool, read func(i int) error) (n int64, err error) {
	var all errgroup.Group
	var total atomic.Int64
	for r := range readers {
		all.Go(func() error {
			i := 0
			defer func() { total.Add(int64(i)) }()
			for ; more(r, i); i++ {
				if err := read(i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	err = all.Wait()
	return total.Load(), err
}

// The readers wait for each other. Fewer than eight would wait for ever.
func TestEightReadersReadAtOnceOnAnyNumberOfProcessors(t *testing.T) {
	const readers, n = 8, 21
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		all.Add(readers)
		var began atomic.Int64
		read, err := readAtOnce(readers, share(n, readers), func(i int) error {
			if i == 0 {
				began.Add(1)
				all.Done()
				all.Wait()
			}
			return nil
		})
		require.NoError(t, err)
		require.Equal(t, []int64{readers, n}, []int64{began.Load(), read})
	})
	failure := errors.New("it is missing")
	_, err := readAtOnce(readers, share(n, readers), func(int) error { return failure })
	require.ErrorIs(t, err, failure)
}
