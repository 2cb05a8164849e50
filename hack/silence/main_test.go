package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestTheLongestSilenceIsNamedWithTheLineBeforeIt(t *testing.T) {
	var out bytes.Buffer
	err := run(t.Context(), &out, 100*time.Millisecond, []string{"sh", "-c", "echo first; echo second >&2; sleep 2; echo third"})
	require.ErrorContains(t, err, "printed nothing for")
	require.Regexp(t, `^first\nsecond\nthird\nsilence: [1-9][0-9.]*m?s at most, after "second"\n$`, out.String())
}

func TestTheSilenceBeforeTheEndCounts(t *testing.T) {
	require.ErrorContains(t, run(t.Context(), &bytes.Buffer{}, 100*time.Millisecond, []string{"sleep", "0.3"}), "printed nothing for")
}

func TestAProgramThatSpeaksIsNotSilent(t *testing.T) {
	require.NoError(t, run(t.Context(), &bytes.Buffer{}, time.Minute, []string{"echo", "hello"}))
	require.Error(t, run(t.Context(), &bytes.Buffer{}, time.Minute, []string{"false"}), "its failure is one")
	require.ErrorContains(t, run(t.Context(), &bytes.Buffer{}, 0, nil), "no command")
}
