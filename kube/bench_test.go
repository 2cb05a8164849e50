package kube

import (
	"bytes"
	"io"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

// endless repeats a text.
type endless struct {
	text []byte
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func (e *endless) Close() error { return nil }

func sampleEvent(b testing.TB) []byte {
	return append(append([]byte(`{"type":"MODIFIED","object":`), samplePod(b)...), '}', '\n')
}

func BenchmarkWatchEvent(b *testing.B) {
	event := sampleEvent(b)
	b.Run("kube", func(b *testing.B) {
		w := &Watch{resource: pods, scanner: newScanner(&endless{text: event}, defaultMaxFrame)}
		b.SetBytes(int64(len(event)))
		b.ReportAllocs()
		for b.Loop() {
			got, err := w.next()
			if err != nil || got.Type != watch.Modified {
				b.Fatal(got, err)
			}
		}
	})
	b.Run("unstructured", func(b *testing.B) {
		decoder := unstructuredWatch(&endless{text: event})
		b.SetBytes(int64(len(event)))
		b.ReportAllocs()
		for b.Loop() {
			if kind, _, err := decoder.Decode(); err != nil || kind != watch.Modified {
				b.Fatal(kind, err)
			}
		}
	})
}

// unstructuredWatch decodes a watch as the dynamic client does.
func unstructuredWatch(source io.ReadCloser) *restwatch.Decoder {
	serializer := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme.Scheme, scheme.Scheme, json.SerializerOptions{})
	frames := streaming.NewDecoder(json.Framer.NewFrameReader(source), serializer)
	return restwatch.NewDecoder(frames, unstructured.UnstructuredJSONScheme)
}

func BenchmarkListPage(b *testing.B) {
	var page bytes.Buffer
	page.WriteString(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)
	for i := range 500 {
		if i > 0 {
			page.WriteByte(',')
		}
		page.Write(bytes.Replace(samplePod(b), []byte(`abcde"`), []byte(strconv.Itoa(i)+`"`), 1))
	}
	page.WriteString(`]}`)
	b.Run("kube", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list, err := decodePage(bytes.NewReader(page.Bytes()), pods, defaultMaxFrame, 1<<30)
			require.NoError(b, err)
			require.Len(b, list.Items, 500)
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/500, "µs/item")
	})
	b.Run("unstructured", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			list, err := runtime.Decode(unstructured.UnstructuredJSONScheme, page.Bytes())
			require.NoError(b, err)
			require.Len(b, list.(*unstructured.UnstructuredList).Items, 500)
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/500, "µs/item")
	})
}

func TestDecodingAnEventCostsAFractionOfUnstructured(t *testing.T) {
	event := sampleEvent(t)
	w := &Watch{resource: pods, scanner: newScanner(&endless{text: event}, defaultMaxFrame)}
	decoder := unstructuredWatch(&endless{text: event})
	ours := testing.AllocsPerRun(100, func() { _, _ = w.next() })
	theirs := testing.AllocsPerRun(100, func() { _, _, _ = decoder.Decode() })
	require.Less(t, 4*ours, theirs, "allocations")
}
