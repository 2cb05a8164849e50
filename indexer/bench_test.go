package indexer

import (
	"errors"
	"flag"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

// These benchmarks put the same Pods into this package's Indexer and into client-go's, which holds them decoded, as a cache of a
// dynamic informer does.

var benchedPods = flag.Int("pods", 5000, "how many Pods the benchmarks of an Indexer put into it")

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

// BenchmarkBuild makes an Indexer with all built-in indices of texts, and says what it holds.
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

// BenchmarkRead asks for one object after the other: as an object, which this package decodes each time and client-go shares with all who
// ask; as JSON, which this package unpacks and client-go has to encode; by an index, for keys and for objects.
func BenchmarkRead(b *testing.B) {
	docs := realPods(b, *benchedPods)
	keys, nodes := make([]string, len(docs)), make([]string, len(docs))
	for i, doc := range docs {
		keys[i], nodes[i] = text(doc, "/metadata/namespace")+"/"+text(doc, "/metadata/name"), text(doc, "/spec/nodeName")
	}
	own := sync.OnceValue(func() *Indexer { return ours(b, docs) })
	theirs := sync.OnceValue(func() cache.Indexer { return clientGo(b, docs) })
	either := map[string]func() cache.Indexer{"ours": func() cache.Indexer { return own() }, "client-go": theirs}
	asObject := func(x cache.Indexer, i int) error {
		_, _, err := x.GetByKey(keys[i%len(keys)])
		return err
	}
	asKeys := func(x cache.Indexer, i int) error {
		_, err := x.IndexKeys(NodeIndex, nodes[i%len(nodes)])
		return err
	}
	asObjects := func(x cache.Indexer, i int) error {
		_, err := x.ByIndex(NodeIndex, nodes[i%len(nodes)])
		return err
	}
	for _, read := range []struct {
		name, whose string
		do          func(x cache.Indexer, i int) error
	}{
		{"json", "ours", func(x cache.Indexer, i int) error {
			if _, found := x.(*Indexer).Doc(keys[i%len(keys)]); !found {
				return errors.New("an object is missing")
			}
			return nil
		}},
		{"json", "client-go", func(x cache.Indexer, i int) error {
			object, _, err := x.GetByKey(keys[i%len(keys)])
			if err == nil {
				_, err = object.(*unstructured.Unstructured).MarshalJSON()
			}
			return err
		}},
		{"object", "ours", asObject},
		{"object", "client-go", asObject},
		{"index-keys", "ours", asKeys},
		{"index-keys", "client-go", asKeys},
		{"index-objects", "ours", asObjects},
		{"index-objects", "client-go", asObjects},
	} {
		name := read.name + "/" + read.whose
		b.Run(name+"/readers=1", func(b *testing.B) {
			x := either[read.whose]()
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := read.do(x, i); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/readers=8", func(b *testing.B) {
			x := either[read.whose]()
			b.SetParallelism(max(8/runtime.GOMAXPROCS(0), 1))
			b.ResetTimer()
			b.RunParallel(func(readers *testing.PB) {
				for i := 0; readers.Next(); i++ {
					if err := read.do(x, i); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
