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

// lookAtFiles is how often renewal checks the files of the embedded PostgreSQL. An upgrade writes them one after the other, in less time.
// So renewal restarts the server if two checks in a row find the same files.
const lookAtFiles = 5 * time.Second

// renewTimeout bounds a restart. A shutdown writes all data in memory to disk.
const renewTimeout = 2 * time.Minute

// renewal restarts the embedded PostgreSQL after its files were replaced on disk. It belongs to one goroutine.
type renewal struct {
	server      *embedded.Server
	log         *slog.Logger
	setOutdated func(bool)
	seen        []embedded.Replacement // at the last check
	logged      string                 // the state that was logged last
	failed      bool                   // the last restart failed and may have stopped the server
}

func (n *renewal) look(ctx context.Context) {
	if n.failed && !n.started(ctx) {
		return
	}
	replaced, err := n.server.Replaced()
	if err != nil {
		n.once(err.Error(), func(log *slog.Logger) {
			log.Warn("checking the files of the embedded PostgreSQL failed; retrying", "error", err)
		})
		return
	}
	n.setOutdated(len(replaced) > 0)
	stable := slices.Equal(replaced, n.seen)
	n.seen = replaced
	switch {
	case len(replaced) == 0:
		n.logged = ""
	case stable && !slices.ContainsFunc(replaced, embedded.Replacement.Gone):
		n.renew(ctx)
	default:
		n.once("replaced", func(log *slog.Logger) {
			log.Warn("the files of the embedded PostgreSQL were replaced on disk; the recorder restarts it when they are complete and no other session uses it")
		})
	}
}

// started starts the server that a failed restart may have stopped, and reports whether it runs. Without a running server there are no
// files to check.
func (n *renewal) started(ctx context.Context) bool {
	ctx, cancel := limitRenewal(ctx)
	defer cancel()
	if err := n.server.Ensure(ctx); err != nil {
		n.setOutdated(true)
		n.warnFailed(ctx, err)
		return false
	}
	n.failed = false
	return true
}

func limitRenewal(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, renewTimeout, fmt.Errorf("the restart took longer than %s", renewTimeout))
}

// renew restarts the server, which cuts the sessions of recorders. They retry their commits, and their deltas wait meanwhile in the queue
// or the spool.
func (n *renewal) renew(ctx context.Context) {
	ctx, cancel := limitRenewal(ctx)
	defer cancel()
	err := n.server.Renew(ctx, postgres.SessionName, checkpoint.Session, activity.Session, election.SessionName)
	var busy *embedded.BusyError
	switch {
	case errors.As(err, &busy):
		n.once(busy.Error(), func(log *slog.Logger) {
			log.Warn("the embedded PostgreSQL still runs from files that were replaced; end the other sessions, so that the recorder can restart it", "error", busy)
		})
	case err != nil:
		n.failed = true
		n.warnFailed(ctx, err)
	default:
		n.log.Info("restarted the embedded PostgreSQL, whose files were replaced on disk", "files", paths(n.seen))
		n.seen, n.logged = nil, ""
		n.setOutdated(false)
	}
}

func (n *renewal) warnFailed(ctx context.Context, err error) {
	err = ctxerr.Explain(ctx, err)
	n.once(err.Error(), func(log *slog.Logger) {
		log.Warn("the embedded PostgreSQL could not be restarted from its new files; retrying", "error", err)
	})
}

// once logs a state when it begins.
func (n *renewal) once(state string, write func(*slog.Logger)) {
	if state != n.logged {
		n.logged = state
		write(n.log.With("files", paths(n.seen)))
	}
}

func paths(replaced []embedded.Replacement) []string {
	var all []string
	for _, r := range replaced {
		all = append(all, r.Path)
	}
	return all
}
