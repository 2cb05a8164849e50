package past

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuberewind/kuberewind/apiserver"
	"github.com/kuberewind/kuberewind/history"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/serve"
)

// A Target holds the flags that select an instant, a session or the end of the record.
type Target struct {
	at, session string
	live        bool
	shift       bool // shift all times to now
}

// AddFlags adds --at, --session and --live to a command, which exclude each other, and --shift-times.
func (t *Target) AddFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	AtFlag(flags, &t.at)
	flags.StringVar(&t.session, "session", "", "name of a session: clients follow its clock; \"session\" makes one")
	flags.BoolVar(&t.live, "live", false, "the end of the record, as it grows")
	flags.BoolVar(&t.shift, "shift-times", false, "shift all times to now, so that clients that compute ages themselves, such as k9s, show the ages at the instant")
}

// An Aim is a parsed Target.
type Aim struct {
	at      history.Instant
	session string // "" for an instant
	shift   bool
}

// Aim parses the flags.
func (t *Target) Aim(cmd *cobra.Command, e *env.Env) (*Aim, error) {
	given := 0
	for _, name := range []string{"at", "session", "live"} {
		if cmd.Flags().Changed(name) {
			given++
		}
	}
	switch {
	case given > 1:
		return nil, env.Mistake(cmd, errors.New("--at, --session and --live exclude each other: use one of them"))
	case t.live:
		return &Aim{session: apiserver.LiveSession, shift: t.shift}, nil
	case cmd.Flags().Changed("session") && t.session == "":
		return nil, env.Mistake(cmd, errors.New("--session is empty: name a session"))
	case cmd.Flags().Changed("session"):
		return &Aim{session: t.session, shift: t.shift}, nil
	}
	at, err := e.Instant(t.at)
	return &Aim{at: at, shift: t.shift}, err
}

// Elsewhere returns the path of an Aim below its cluster's path, on a shared server, and its title. found is false if that
// server must first resolve the seq.
func (a *Aim) Elsewhere() (path, title string, found bool) {
	switch at := a.at.String(); {
	case a.session == apiserver.LiveSession:
		return "/session/" + a.session, "live", true
	case a.session != "":
		return "/session/" + url.PathEscape(a.session), "session:" + a.session, true
	default:
		return "/at/" + url.PathEscape(at), at, strings.HasPrefix(at, "seq:")
	}
}

// needsRunning reports whether the Aim needs a server that already runs.
func (a *Aim) needsRunning() bool { return a.session != "" && a.session != apiserver.LiveSession }

// Find returns the place of an Aim. access belongs to a running server, or is nil.
func (a *Aim) Find(ctx context.Context, e *env.Env, rec *env.Record, access *serve.Access) (*Place, error) {
	p, err := a.find(ctx, e, rec, access)
	if err == nil && a.shift {
		p.Context, p.root = p.Context+"_shifted", apiserver.Shifted(p.root)
	}
	return p, err
}

func (a *Aim) find(ctx context.Context, e *env.Env, rec *env.Record, access *serve.Access) (*Place, error) {
	if a.session == "" {
		return Find(ctx, e, rec, a.at)
	}
	if a.needsRunning() {
		if err := a.checkSession(ctx, e, rec, access); err != nil {
			return nil, err
		}
	}
	namespace, err := namespaceOf(ctx, e, rec)
	if err != nil {
		return nil, err
	}
	p := &Place{Context: rec.Cluster().Name + "@session:" + a.session, root: apiserver.SessionPath(rec.Cluster().UID, a.session), namespace: namespace}
	if a.session == apiserver.LiveSession {
		p.Context = rec.Cluster().Name + "@live"
	}
	return p, nil
}

// checkSession returns an error if the cluster does not have the session.
func (a *Aim) checkSession(ctx context.Context, e *env.Env, rec *env.Record, access *serve.Access) error {
	if access == nil {
		return ErrNoServer(e)
	}
	sessions, err := NewSessions(access, rec.Cluster().UID)
	if err != nil {
		return err
	}
	defer sessions.Close()
	state, err := sessions.Get(ctx, a.session)
	switch {
	case err != nil:
		return err
	case state.Cluster != rec.Cluster().UID:
		return fmt.Errorf("session %s belongs to the cluster with UID %s: name that cluster with --cluster", a.session, state.Cluster)
	}
	return nil
}

// ErrNoServer returns an error: no server runs that could have a session.
func ErrNoServer(e *env.Env) error {
	return fmt.Errorf("no server of this database runs, and a session needs one: start %q in another terminal", e.Command+" serve")
}

// AtFlag adds --at.
func AtFlag(flags *pflag.FlagSet, at *string) {
	env.InstantVar(flags, at, "at", "now", "instant: a time (18:45, yesterday 14:05, 2026-01-31), 10m ago, now, seq:N or rv:N")
}
