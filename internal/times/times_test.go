package times_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/times"
)

func TestTheLaterOfTwoTimesIsTheSameInEitherOrder(t *testing.T) {
	first, second := time.Unix(1, 0), time.Unix(2, 0)
	for _, pair := range [][2]time.Time{{first, second}, {second, first}} {
		require.Equal(t, second, times.Later(pair[0], pair[1]))
		require.Equal(t, first, times.Earlier(pair[0], pair[1]))
	}
	require.Equal(t, first, times.Later(time.Time{}, first))
	require.Equal(t, first, times.Earlier(first, first))
}
