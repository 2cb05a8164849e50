package history

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestLastVersionsNamesAMissingDay(t *testing.T) {
	b, lost := newBookWithALostDay(t)
	found, missing, err := b.record(t).Lookup().LastVersions(t.Context(), []int64{1, 2, 5}, 5)
	require.NoError(t, err)
	require.Contains(t, found, int64(5))
	require.NotContains(t, found, int64(1))
	require.NotNil(t, missing)
	require.Equal(t, lost.Format(time.DateOnly), missing.Day.Format(time.DateOnly))
}
