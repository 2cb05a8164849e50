package stream

import (
	"context"

	"golang.org/x/sync/semaphore"
)

// Gate bounds how many lists are under way at once.
type Gate struct{ lists *semaphore.Weighted }

// NewGate returns a gate for so many lists.
func NewGate(lists int) *Gate { return &Gate{lists: semaphore.NewWeighted(int64(lists))} }

func (g *Gate) acquire(ctx context.Context) (release func(), err error) {
	if err := g.lists.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { g.lists.Release(1) }, nil
}
