package web_test

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// pictures is where docs/timeline.md has its pictures.
const pictures = "../../docs/pictures"

// shrink stores each picture with at most 256 colours. A page has few, and a photograph is none of them.
func shrink(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(pictures + "/*.png")
	require.NoError(t, err)
	for _, file := range files {
		drawn, err := os.ReadFile(file)
		require.NoError(t, err)
		full, err := png.Decode(bytes.NewReader(drawn))
		require.NoError(t, err)
		var small bytes.Buffer
		require.NoError(t, (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, withPalette(full)))
		require.NoError(t, os.WriteFile(file, small.Bytes(), 0o644))
	}
}

// withPalette has the most frequent colours. Others, which are at the edges of letters, become the nearest of them.
func withPalette(full image.Image) *image.Paletted {
	bounds, often := full.Bounds(), map[color.RGBA]int{}
	each(bounds, func(x, y int) { often[rgba(full, x, y)]++ })
	colours := make([]color.RGBA, 0, len(often))
	for c := range often {
		colours = append(colours, c)
	}
	slices.SortFunc(colours, func(a, b color.RGBA) int {
		if often[a] != often[b] {
			return often[b] - often[a]
		}
		return int(a.R)<<16 + int(a.G)<<8 + int(a.B) - int(b.R)<<16 - int(b.G)<<8 - int(b.B)
	})
	palette := color.Palette{}
	for _, c := range colours[:min(len(colours), 256)] {
		palette = append(palette, c)
	}
	small, nearest := image.NewPaletted(bounds, palette), map[color.RGBA]uint8{}
	each(bounds, func(x, y int) {
		c := rgba(full, x, y)
		i, known := nearest[c]
		if !known {
			i = uint8(palette.Index(c))
			nearest[c] = i
		}
		small.SetColorIndex(x, y, i)
	})
	return small
}

func each(bounds image.Rectangle, do func(x, y int)) {
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			do(x, y)
		}
	}
}

func rgba(i image.Image, x, y int) color.RGBA {
	return color.RGBAModel.Convert(i.At(x, y)).(color.RGBA)
}
