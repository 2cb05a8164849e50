package recorder

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// gate lets a few lists be in flight at once.
type gate struct{ lists *semaphore.Weighted }

func newGate(lists int) *gate { return &gate{lists: semaphore.NewWeighted(int64(lists))} }

func (g *gate) acquire(ctx context.Context) (release func(), err error) {
	if err := g.lists.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { g.lists.Release(1) }, nil
}
