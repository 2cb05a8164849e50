package database

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/kuberewind/kuberewind/checkpoint"
	"github.com/kuberewind/kuberewind/internal/ctxerr"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/embedded"
	"github.com/kuberewind/kuberewind/sink/postgres"
	"github.com/kuberewind/kuberewind/timeline/activity"
)

// lookAtFiles is how often the files of the embedded PostgreSQL are looked at. An upgrade writes them within less, one after the
// other: the server is restarted when two looks in a row find the same.
const lookAtFiles = 5 * time.Second

// renewTimeout bounds a restart. A shutdown writes what is in memory to disk.
const renewTimeout = 2 * time.Minute

// renewal restarts the embedded PostgreSQL after its files were replaced on disk. It belongs to one goroutine.
type renewal struct {
	server *embedded.Server
	log    *slog.Logger
	tell   func(outdated bool)
	seen   []embedded.Replacement // at the last look
	said   string                 // the state that was logged last
	failed bool                   // whether the last restart failed, which may have stopped the server
}

func (n *renewal) look(ctx context.Context) {
	if n.failed && !n.started(ctx) {
		return
	}
	replaced, err := n.server.Replaced()
	if err != nil {
		n.once(err.Error(), func(log *slog.Logger) {
			log.Warn("the files of the embedded PostgreSQL cannot be looked at", "error", err)
		})
		return
	}
	n.tell(len(replaced) > 0)
	settled := slices.Equal(replaced, n.seen)
	n.seen = replaced
	switch {
	case len(replaced) == 0:
		n.said = ""
	case settled && !slices.ContainsFunc(replaced, embedded.Replacement.Gone):
		n.renew(ctx)
	default:
		n.once("replaced", func(log *slog.Logger) {
			log.Warn("the files of the embedded PostgreSQL were replaced on disk; it is restarted as soon as they are whole and nobody else uses it")
		})
	}
}

// started starts the server that a failed restart may have stopped. Such a server has no files to look at.
func (n *renewal) started(ctx context.Context) bool {
	ctx, cancel := limitRenewal(ctx)
	defer cancel()
	if err := n.server.Ensure(ctx); err != nil {
		n.tell(true)
		n.warnFailed(ctx, err)
		return false
	}
	n.failed = false
	return true
}

func limitRenewal(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, renewTimeout, fmt.Errorf("not done within %s", renewTimeout))
}

// renew cuts the sessions of recorders: their commits are tried again, and what they record meanwhile waits in the queue or the spool.
func (n *renewal) renew(ctx context.Context) {
	ctx, cancel := limitRenewal(ctx)
	defer cancel()
	err := n.server.Renew(ctx, postgres.SessionName, checkpoint.Session, activity.Session, election.SessionName)
	var busy *embedded.BusyError
	switch {
	case errors.As(err, &busy):
		n.once(busy.Error(), func(log *slog.Logger) {
			log.Warn("the embedded PostgreSQL still runs from files that were replaced; end the other sessions to have it restarted", "error", busy)
		})
	case err != nil:
		n.failed = true
		n.warnFailed(ctx, err)
	default:
		n.log.Info("restarted the embedded PostgreSQL, whose files were replaced on disk", "files", paths(n.seen))
		n.seen, n.said = nil, ""
		n.tell(false)
	}
}

func (n *renewal) warnFailed(ctx context.Context, err error) {
	err = ctxerr.Explain(ctx, err)
	n.once(err.Error(), func(log *slog.Logger) {
		log.Warn("the embedded PostgreSQL could not be restarted from its new files; it is tried again", "error", err)
	})
}

// once logs a state when it begins.
func (n *renewal) once(state string, tell func(*slog.Logger)) {
	if state != n.said {
		n.said = state
		tell(n.log.With("files", paths(n.seen)))
	}
}

func paths(replaced []embedded.Replacement) []string {
	var all []string
	for _, r := range replaced {
		all = append(all, r.Path)
	}
	return all
}

// Outdated names the files of the embedded PostgreSQL that were replaced on disk since it was started.
func (d *Database) Outdated() ([]string, error) {
	if d.embedded == nil {
		return nil, nil
	}
	replaced, err := d.embedded.Replaced()
	return paths(replaced), err
}
