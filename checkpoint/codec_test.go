package checkpoint

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/patch"
)

func drawRecord(t *rapid.T) Record {
	r := Record{
		ObjectID: rapid.Int64().Draw(t, "id"), Seq: rapid.Int64().Draw(t, "seq"), Stream: rapid.Int32().Draw(t, "stream"),
		Namespace: rapid.String().Draw(t, "namespace"), Name: rapid.String().Draw(t, "name"), UID: rapid.String().Draw(t, "uid"),
		RV: rapid.String().Draw(t, "rv"), Version: rapid.String().Draw(t, "version"),
		Doc: patch.Doc(rapid.SliceOf(rapid.Byte()).Draw(t, "doc")),
	}
	r.Digest = patch.Digest(r.Doc)
	return r
}

func TestABlockDecodesToItsObjects(t *testing.T) {
	e, d := newEncoder(), NewDecoder()
	defer d.Close()
	rapid.Check(t, func(t *rapid.T) {
		records := rapid.SliceOf(rapid.Custom(drawRecord)).Draw(t, "records")
		decoded, err := d.Block(e.Block(records))
		require.NoError(t, err)
		require.Len(t, decoded, len(records))
		keys := make([]Key, len(records))
		for i := range records {
			require.Equal(t, string(records[i].Doc), string(decoded[i].Doc))
			records[i].Doc, decoded[i].Doc = nil, nil
			require.Equal(t, records[i], decoded[i])
			keys[i] = records[i].Key()
		}
		directory, err := d.Directory(e.Directory(keys))
		require.NoError(t, err)
		require.Equal(t, keys, directory)
	})
}

func TestBytesThatAreNotABlockAreRefused(t *testing.T) {
	e, d := newEncoder(), NewDecoder()
	defer d.Close()
	whole := e.Block([]Record{{Name: "a", Doc: patch.Doc(`{}`)}, {Name: "b", Doc: patch.Doc(`{"a":1}`)}})
	plain, err := d.zstd.DecodeAll(whole, make([]byte, 0, 1<<10))
	require.NoError(t, err)
	for n := range plain {
		_, err := d.Block(e.zstd.EncodeAll(plain[:n], nil))
		require.ErrorIs(t, err, ErrBlock, "cut after %d bytes", n)
	}
	_, err = d.Block(e.zstd.EncodeAll(append(plain, 0), nil))
	require.ErrorIs(t, err, ErrBlock)
	_, err = d.Directory(whole)
	require.ErrorIs(t, err, ErrBlock)
	_, err = d.Block(whole[:len(whole)-3])
	require.ErrorIs(t, err, ErrBlock)
}

// declaring returns a zstd frame that declares a size and holds three invalid parts.
func declaring(size uint32) []byte {
	frame := binary.LittleEndian.AppendUint32([]byte{0x28, 0xb5, 0x2f, 0xfd, 0x80, 0x00}, size)
	return append(frame, "000\x05\xff\xff\x050000"...)
}

// allocated returns how many bytes a function allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestADecoderAllocatesNoMoreThanTheBytesCanHold(t *testing.T) {
	e, d := newEncoder(), NewDecoder()
	defer d.Close()
	sound := e.Block([]Record{{Name: "a", Doc: patch.Doc(`{}`)}})
	_, err := d.Block(sound)
	require.NoError(t, err)
	for name, data := range map[string][]byte{
		"alone":               declaring(800 << 20),
		"after a sound frame": append(bytes.Clone(sound), declaring(800<<20)...),
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			require.Less(t, allocated(func() { _, err = d.Block(data) }), uint64(8<<20))
			require.ErrorIs(t, err, ErrBlock)
		})
	}
}

func TestAHighlyCompressedBlockIsDecoded(t *testing.T) {
	e, d := newEncoder(), NewDecoder()
	defer d.Close()
	for _, size := range []int{0, 100, 255, 256, 1 << 10, 64 << 20} {
		packed := e.Block([]Record{{Doc: make(patch.Doc, size)}})
		records, err := d.Block(packed)
		require.NoError(t, err, "%d bytes of zero in %d", size, len(packed))
		require.Len(t, records[0].Doc, size)
	}
}

func FuzzAnythingDecodesOrIsAnError(f *testing.F) {
	e, d := newEncoder(), NewDecoder()
	f.Add(e.Block([]Record{{Name: "a", Doc: patch.Doc(`{}`)}}), []byte{kindRecords, 255, 255, 3})
	f.Fuzz(func(_ *testing.T, data, plain []byte) {
		_, _ = d.Block(data)
		packed := e.zstd.EncodeAll(plain, nil)
		_, _ = d.Block(packed)
		_, _ = d.Directory(packed)
	})
}

func TestCoveringReturnsEveryBlockOfARange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.Custom(func(t *rapid.T) Key {
			return Key{rapid.Int32Range(1, 3).Draw(t, "stream"), rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "ns"), rapid.StringN(0, 2, 2).Draw(t, "name")}
		})
		keys := rapid.SliceOfN(key, 1, 30).Draw(t, "keys")
		slices.SortFunc(keys, Key.Compare)
		size := rapid.IntRange(1, 7).Draw(t, "block")
		var first []Key
		holders := map[int32][]Key{}
		for block := range slices.Chunk(keys, size) {
			first = append(first, block[0])
			holders[int32(len(first))] = block
		}
		from, to := key.Draw(t, "from"), key.Draw(t, "to")
		if from.Compare(to) > 0 {
			from, to = to, from
		}
		blocks := covering(first, from, to)
		for number, block := range holders {
			for _, k := range block {
				if k.Compare(from) >= 0 && k.Compare(to) <= 0 {
					require.Contains(t, blocks, number, "%v is from %v to %v", k, from, to)
				}
			}
		}
	})
}
