package spooling

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/kuberewind/kuberewind/deltafifo/spool"
)

const (
	// readersTimeout is how long OpenExclusive waits for processes that only read the spool, such as "recorder erase" at its
	// beginning. Reading a large spool takes less.
	readersTimeout = time.Minute
	readersLook    = 100 * time.Millisecond
)

// OpenExclusive opens the spool. If other processes read it, OpenExclusive waits for them.
func OpenExclusive(ctx context.Context, o spool.Options, log *slog.Logger) (*spool.Spool, error) {
	s, err := spool.Open(o)
	if !errors.Is(err, spool.ErrRead) {
		return s, err
	}
	log.Info("another process reads the spool; waiting for its end", "folder", o.Dir)
	limited, cancel := context.WithTimeout(ctx, readersTimeout)
	defer cancel()
	ticker := time.NewTicker(readersLook)
	defer ticker.Stop()
	for errors.Is(err, spool.ErrRead) {
		select {
		case <-limited.Done():
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, err
		case <-ticker.C:
		}
		s, err = spool.Open(o)
	}
	return s, err
}
