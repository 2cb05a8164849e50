package patch

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheCheckFindsTheSameErrorsAsApplyAndCompare damages patches bit by bit. Some damaged patches still make the new
// document.
func TestTheCheckFindsTheSameErrorsAsApplyAndCompare(t *testing.T) {
	refused := 0
	for _, name := range []string{"deployment", "event", "pod-small"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
		require.NoError(t, err)
		versions := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
		for i := range 2 {
			refused += checkDamaged(t, versions[i], versions[i+1])
		}
	}
	require.NotZero(t, refused)
}

func checkDamaged(t *testing.T, before, after []byte) (refused int) {
	from, err := Canonical(before)
	require.NoError(t, err)
	to, err := Canonical(after)
	require.NoError(t, err)
	d := new(differ)
	require.NoError(t, d.from.parseDoc(from))
	change, err := d.diff(nil, to)
	require.NoError(t, err)
	require.NoError(t, d.check(change, to))
	for i := 0; i < len(change); i += 3 {
		damaged := bytes.Clone(change)
		damaged[i] ^= 1 << (i % 4)
		got, applyErr := Apply(from, damaged)
		right := applyErr == nil && bytes.Equal(got, to)
		err := d.check(damaged, to)
		require.Equal(t, right, err == nil, "byte %d of %s: %v", i, change, err)
		if !right {
			refused++
		}
	}
	return refused
}

func TestTheCheckComparesTheWholeDocument(t *testing.T) {
	from := Doc(`{"a":[1,2],"b":{"c":"d"},"e":1}`)
	change := []byte(`[{"op":"add","path":"/a/0","value":0},{"old":"d","op":"replace","path":"/b/c","value":"f"}]`)
	to, err := Apply(from, change)
	require.NoError(t, err)
	d := new(differ)
	require.NoError(t, d.from.parseDoc(from))
	require.NoError(t, d.check(change, to))
	for i := range to {
		require.ErrorIs(t, d.check(change, to[:i]), errWrongResult, "cut")
		other := bytes.Clone(to)
		other[i]++
		require.ErrorIs(t, d.check(change, other), errWrongResult, "byte %d", i)
	}
	require.ErrorIs(t, d.check(change, append(to, ' ')), errWrongResult)
}

func BenchmarkRebasedDiff(b *testing.B) {
	for _, name := range []string{"pod-small", "pod", "event"} {
		text, err := os.ReadFile(filepath.Join("testdata", name+".jsonl"))
		require.NoError(b, err)
		versions := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
		from, err := Canonical(versions[len(versions)/2])
		require.NoError(b, err)
		to, err := Canonical(versions[len(versions)/2+1])
		require.NoError(b, err)
		var dst []byte
		var before []byte
		rv, _ := Get(to, "/metadata/resourceVersion")
		b.Run(name+"/checked", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				before = append(before[:0], from...)
				if dst, err = AppendRebasedDiff(dst[:0], before, to, "/metadata/resourceVersion", rv); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/applied-and-compared", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				before, _ := Set(from, "/metadata/resourceVersion", rv)
				dst, _ = AppendDiff(dst[:0], before, to)
				if got, err := Apply(before, dst); err != nil || !bytes.Equal(got, to) {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/unchecked", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				dst, _ = AppendDiff(dst[:0], from, to)
			}
		})
	}
}

// With a value that is no JSON, the patch does not make the new document.
func TestARebasedDiffThatDoesNotMakeTheNewDocumentIsAnError(t *testing.T) {
	dst := []byte("before")
	out, err := AppendRebasedDiff(dst, Doc(`{"a":"xy"}`), Doc(`{"a":"z"}`), "/a", Doc(`"",1`))
	require.Error(t, err)
	require.Equal(t, dst, out)
}
