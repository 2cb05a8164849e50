package indexer

import (
	"runtime"
	"testing"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/kuberewind/kuberewind/patch"
)

var (
	podResource  = schema.GroupResource{Resource: "pods"}
	nodeResource = schema.GroupResource{Resource: "nodes"}
	jobResource  = schema.GroupResource{Group: "batch", Resource: "jobs"}
)

func TestASnapshotIsFilledConcurrentlyAndFindsByResourceIndexAndUID(t *testing.T) {
	s := NewSnapshot(cache.Indexers{"user": byUser}, Options{})
	docs := realPods(t, 400)
	var fill errgroup.Group
	for worker := range 4 {
		fill.Go(func() error {
			for i := worker; i < len(docs); i += 4 {
				if err := s.Add(podResource, docs[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(t, fill.Wait())
	require.NoError(t, s.Add(nodeResource, []byte(`{"metadata":{"name":"node-1","uid":"n1"}}`)))
	require.NoError(t, s.Add(jobResource, pod("job", users("ann"))))
	require.Empty(t, s.Resource(schema.GroupResource{Resource: "services"}).List())

	require.Equal(t, []schema.GroupResource{nodeResource, podResource, jobResource}, s.Resources())
	require.Equal(t, len(docs)+2, s.Len())
	var all int
	for item := range s.All() {
		all++
		require.Equal(t, item.Key, keyOf(item.Doc))
	}
	require.Equal(t, s.Len(), all)
	for range s.All() {
		break
	}

	uid := text(docs[7], "/metadata/uid")
	item, ok := s.ByUID(types.UID(uid))
	require.True(t, ok)
	require.Equal(t, Item{Resource: podResource, Key: keyOf(docs[7]), Doc: docs[7]}, item)
	item, ok = s.ByUID("n1")
	require.True(t, ok)
	require.Equal(t, nodeResource, item.Resource)
	_, ok = s.ByUID("nobody")
	require.False(t, ok)

	want := 0
	for _, doc := range docs {
		if text(doc, "/metadata/namespace") == "team-3" {
			want++
		}
	}
	keys, err := s.Resource(podResource).IndexKeys(NamespaceIndex, "team-3")
	require.NoError(t, err)
	require.Len(t, keys, want)
	require.Equal(t, []string{"job"}, found(t, s.Resource(jobResource), "user", "ann"))
}

// BenchmarkSnapshot fills a snapshot with 20,000 Pods and reports the memory of each: without indices, and with all
// indices built.
func BenchmarkSnapshot(b *testing.B) {
	const n = 20_000
	docs := realPods(b, n)
	names := namesOf(docs)
	size := 0
	for _, doc := range docs {
		size += len(doc)
	}
	var bare, indexed uint64
	for b.Loop() {
		b.StopTimer()
		before := heap()
		s := NewSnapshot(nil, Options{})
		b.StartTimer()
		fill(b, s, docs, names)
		b.StopTimer()
		bare = heap() - before
		for name := range BuiltIn() {
			s.Resource(podResource).ListIndexFuncValues(name)
		}
		indexed = heap() - before
		require.Equal(b, n, s.Len())
		b.StartTimer()
	}
	b.ReportMetric(float64(size)/n, "JSON-B/object")
	b.ReportMetric(float64(bare)/n, "B/object")
	b.ReportMetric(float64(indexed)/n, "B/object-indexed")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/object")
}

func namesOf(docs []patch.Doc) [][2]string {
	names := make([][2]string, len(docs))
	for i, doc := range docs {
		names[i] = [2]string{text(doc, "/metadata/namespace"), text(doc, "/metadata/name")}
	}
	return names
}

// fill adds Pods whose names are known, as in a rebuild.
func fill(b *testing.B, s *Snapshot, docs []patch.Doc, names [][2]string) {
	var group errgroup.Group
	for worker := range runtime.GOMAXPROCS(0) {
		group.Go(func() error {
			for i := worker; i < len(docs); i += runtime.GOMAXPROCS(0) {
				if err := s.AddDoc(podResource, names[i][0], names[i][1], "1", docs[i]); err != nil {
					return err
				}
			}
			return nil
		})
	}
	require.NoError(b, group.Wait())
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func BenchmarkIndices(b *testing.B) {
	docs := realPods(b, 5000)
	names := namesOf(docs)
	for name := range BuiltIn() {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := NewSnapshot(nil, Options{})
				fill(b, s, docs, names)
				b.StartTimer()
				s.Resource(podResource).ListIndexFuncValues(name)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(docs)), "ns/object")
		})
	}
}

// BenchmarkCodecs compares the ways to pack objects.
func BenchmarkCodecs(b *testing.B) {
	docs := realPods(b, 2000)
	var sample []byte
	for i := 0; len(sample) < sampled; i++ {
		sample = append(sample, docs[i]...)
	}
	dict := s2.MakeDict(sample, nil)
	writer, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderDictRaw(1, sample))
	require.NoError(b, err)
	reader, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderDictRaw(1, sample))
	require.NoError(b, err)
	defer reader.Close()
	for _, codec := range []struct {
		name   string
		pack   func(dst, doc []byte) []byte
		unpack func(dst, packed []byte) ([]byte, error)
	}{
		{"s2", s2.Encode, s2.Decode},
		{"s2-dictionary", dict.Encode, dict.Decode},
		{"zstd-dictionary", func(dst, doc []byte) []byte { return writer.EncodeAll(doc, dst[:0]) }, func(dst, packed []byte) ([]byte, error) { return reader.DecodeAll(packed, dst[:0]) }},
	} {
		packed := make([][]byte, len(docs))
		buffer := make([]byte, 64<<10)
		b.Run(codec.name+"/pack", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				codec.pack(buffer, docs[i%len(docs)])
			}
		})
		size := 0
		for i := range docs {
			packed[i] = append([]byte(nil), codec.pack(nil, docs[i])...)
			size += len(packed[i])
		}
		b.Run(codec.name+"/unpack", func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				if _, err := codec.unpack(buffer, packed[i%len(packed)]); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(size)/float64(len(docs)), "B/object")
		})
	}
}
