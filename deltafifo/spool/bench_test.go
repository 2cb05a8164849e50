package spool

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A record of the size and redundancy of a Pod.
func BenchmarkAppendAndRead(b *testing.B) {
	s := open(b, Options{Dir: b.TempDir(), MaxBytes: 1 << 40})
	defer func() { require.NoError(b, s.Close()) }()
	record := []byte(strings.Repeat(fmt.Sprintf(`{"name":"%x","image":"registry.example.com/app:%d"}`, 0xfeed, 42), 80))
	b.SetBytes(int64(len(record)))
	for b.Loop() {
		require.NoError(b, s.Append(s.Next(), record))
		_, ok, err := s.Read()
		require.True(b, ok)
		require.NoError(b, err)
		require.NoError(b, s.Release(s.Next()-1))
	}
}
