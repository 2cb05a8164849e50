package database

import (
	"context"
	"time"
)

// Missed reports to Keep that the database does not answer. It does not block.
func (d *Database) Missed() {
	select {
	case d.missed <- struct{}{}:
	default: // Keep has not received the last report yet, or the database is not embedded.
	}
}

// Keep keeps the embedded PostgreSQL running until ctx ends. After each call of Missed, it starts the server again if it has died. It
// restarts the server if its files were replaced. After each check it calls outdated with whether the server runs from replaced files.
func (d *Database) Keep(ctx context.Context, outdated func(bool)) {
	if d.embedded == nil {
		<-ctx.Done()
		return
	}
	files := &renewal{server: d.embedded, log: d.log, setOutdated: outdated}
	ticker := time.NewTicker(d.lookAt)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			files.look(ctx)
			continue
		case <-d.missed:
		}
		if err := d.embedded.Ensure(ctx); err != nil && ctx.Err() == nil {
			d.log.Error("the embedded PostgreSQL could not be started again", "error", err)
		}
	}
}

// Outdated returns the paths of the files that were replaced on disk since the embedded PostgreSQL was started.
func (d *Database) Outdated() ([]string, error) {
	if d.embedded == nil {
		return nil, nil
	}
	replaced, err := d.embedded.Replaced()
	return paths(replaced), err
}
