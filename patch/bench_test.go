package patch_test

import (
	"bytes"
	"encoding/json"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime"
	kjson "k8s.io/apimachinery/pkg/util/json"

	"github.com/kuberewind/kuberewind/patch"
)

// benchmarkSizes names the measured series; the benchmarks take two neighbouring versions from the middle of each.
var benchmarkSizes = []string{"pod-small", "pod", "event"}

// neighbours returns two successive versions of an object, as the API server served them.
func neighbours(b *testing.B, name string) (before, after []byte) {
	versions := series(b, name)
	middle := len(versions) / 2
	return versions[middle], versions[middle+1]
}

func BenchmarkCanonical(b *testing.B) {
	for _, name := range benchmarkSizes {
		_, text := neighbours(b, name)
		measure(b, name+"/patch", text, func() error {
			_, err := patch.Canonical(text)
			return err
		})
		var dst []byte
		measure(b, name+"/patch-append", text, func() (err error) {
			dst, err = patch.AppendCanonical(dst[:0], text)
			return err
		})
		doc := canonical(b, text)
		measure(b, name+"/patch-already-canonical", doc, func() error {
			_, err := patch.Canonical(doc)
			return err
		})
		measure(b, name+"/encoding-json", text, func() error {
			var v any
			d := json.NewDecoder(bytes.NewReader(text))
			d.UseNumber()
			if err := d.Decode(&v); err != nil {
				return err
			}
			_, err := json.Marshal(v)
			return err
		})
	}
}

func BenchmarkDiff(b *testing.B) {
	for _, name := range benchmarkSizes {
		before, after := neighbours(b, name)
		from, to := canonical(b, before), canonical(b, after)
		measure(b, name+"/patch", to, func() error {
			_, err := patch.Diff(from, to)
			return err
		})
		var dst []byte
		measure(b, name+"/patch-append", to, func() (err error) {
			dst, err = patch.AppendDiff(dst[:0], from, to)
			return err
		})
		measure(b, name+"/evanphx-merge", to, func() error {
			_, err := jsonpatch.CreateMergePatch(from, to)
			return err
		})
	}
}

func BenchmarkApply(b *testing.B) {
	for _, name := range benchmarkSizes {
		before, after := neighbours(b, name)
		from := canonical(b, before)
		ops, err := patch.Diff(from, canonical(b, after))
		require.NoError(b, err)
		measure(b, name+"/patch", from, func() error {
			_, err := patch.Apply(from, ops)
			return err
		})
		measure(b, name+"/evanphx", from, func() error {
			p, err := jsonpatch.DecodePatch(ops)
			if err == nil {
				_, err = p.Apply(from)
			}
			return err
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	for _, name := range benchmarkSizes {
		_, text := neighbours(b, name)
		doc := canonical(b, text)
		measure(b, name+"/patch", doc, func() error {
			_, err := patch.Decode(doc)
			return err
		})
		measure(b, name+"/apimachinery", doc, func() error {
			var v any
			return kjson.Unmarshal(doc, &v)
		})
		object, err := patch.Decode(doc)
		require.NoError(b, err)
		measure(b, name+"/deep-copy", doc, func() error {
			runtime.DeepCopyJSONValue(object)
			return nil
		})
	}
}

func BenchmarkRest(b *testing.B) {
	_, text := neighbours(b, "pod-small")
	doc := canonical(b, text)
	measure(b, "digest", doc, func() error { patch.Digest(doc); return nil })
	measure(b, "safe-for-sql", doc, func() error { patch.SafeForSQL(doc); return nil })
	measure(b, "get", doc, func() error { patch.Get(doc, "/metadata/resourceVersion"); return nil })
	paths := []patch.Path{path(b, "/data/*"), path(b, "/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration")}
	measure(b, "rewrite-nothing", doc, func() error {
		_, err := patch.Rewrite(doc, paths, nil)
		return err
	})
}

func measure(b *testing.B, name string, text []byte, f func() error) {
	b.Run(name, func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		b.ReportAllocs()
		for b.Loop() {
			if err := f(); err != nil {
				b.Fatal(err)
			}
		}
	})
}
