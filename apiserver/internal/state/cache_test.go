package state_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
)

func TestAClosedCacheBuildsNothing(t *testing.T) {
	c := state.NewCache(1000)
	c.Close()
	_, err := c.Get(t.Context(), state.ID{Seq: 1}, func(context.Context) (*state.State, error) {
		t.Error("it was built")
		return nil, nil
	})
	require.ErrorIs(t, err, context.Canceled)
}

func TestACacheCanBeClosedDuringRequests(t *testing.T) {
	for range 100 {
		c := state.NewCache(1000)
		var asking sync.WaitGroup
		for seq := range int64(4) {
			asking.Go(func() {
				_, err := c.Get(t.Context(), state.ID{Seq: seq}, func(ctx context.Context) (*state.State, error) {
					<-ctx.Done() // as a slow rebuild does
					return nil, ctx.Err()
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("it is %v", err)
				}
			})
		}
		c.Close()
		asking.Wait()
	}
}
