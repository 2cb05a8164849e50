package state_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/apiserver/internal/state"
)

func TestACacheThatIsClosedBuildsNothing(t *testing.T) {
	c := state.NewCache(1000)
	c.Close()
	_, err := c.Get(t.Context(), state.ID{Seq: 1}, func(context.Context) (*state.State, error) {
		t.Error("it was built")
		return nil, nil
	})
	require.ErrorIs(t, err, context.Canceled)
}

func TestACacheIsClosedWhileItIsAsked(t *testing.T) {
	failed := errors.New("nothing is there")
	for range 200 {
		c := state.NewCache(1000)
		var asking sync.WaitGroup
		for seq := range int64(4) {
			asking.Go(func() {
				_, err := c.Get(t.Context(), state.ID{Seq: seq}, func(context.Context) (*state.State, error) { return nil, failed })
				if !errors.Is(err, failed) && !errors.Is(err, context.Canceled) {
					t.Errorf("unexpected: %v", err)
				}
			})
		}
		c.Close()
		asking.Wait()
	}
}
