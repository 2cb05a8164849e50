package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOnlyLivesThatCanHaveADeltaOnADayAreLookedUpThere(t *testing.T) {
	lives := []Life{
		{ObjectID: 1, DeletedSeq: 9}, {ObjectID: 2, DeletedSeq: 10}, {ObjectID: 3}, {ObjectID: 10, DeletedSeq: 15}, {ObjectID: 20, DeletedSeq: 30}, {ObjectID: 21},
	}
	require.Equal(t, []int64{2, 3, 10, 20}, livingOn(&day{firstSeq: 10, lastSeq: 20}, lives))
	require.Empty(t, livingOn(&day{firstSeq: 10, lastSeq: 20}, nil))
}
