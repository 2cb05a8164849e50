package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/recorder"
)

func (p *program) psqlCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "psql [-- psql arguments]",
		Short: "Open a psql shell on the record",
		Long:  "Open a psql shell on the record, embedded or elsewhere. If the embedded PostgreSQL does not run, the command starts it for as long as\nthe shell is open.",
		Example: `  recorder psql
  recorder psql -- -c \
    'SELECT * FROM kuberewind.changes ORDER BY seq DESC LIMIT 20'`,
		Args: argumentsAfterDashes,
		RunE: func(cmd *cobra.Command, args []string) error { return p.psql(cmd, args) },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return mistake(cmd, fmt.Errorf("%w; arguments of psql go after --", err))
	})
	concerns(cmd, databaseSettings...)
	return cmd
}

func argumentsAfterDashes(cmd *cobra.Command, args []string) error {
	if dashes := cmd.ArgsLenAtDash(); len(args) > 0 && dashes != 0 {
		return mistake(cmd, fmt.Errorf("arguments of psql go after --, and %q does not", args[0]))
	}
	return nil
}

func (p *program) psql(cmd *cobra.Command, args []string) error {
	cfg, log, err := p.loadQuietly(cmd)
	if err != nil {
		return err
	}
	db, err := database.OpenRecord(cmd.Context(), cfg, log)
	if err != nil {
		return &recorder.EnvironmentError{Err: err}
	}
	ctx, release := untilTerminated(cmd.Context())
	defer release()
	shell, err := db.PSQL(ctx, args...)
	if err != nil {
		return errors.Join(&recorder.EnvironmentError{Err: err}, db.Close())
	}
	shell.Stdin, shell.Stdout, shell.Stderr = p.in, p.out, p.err
	shell.Cancel = func() error { return shell.Process.Signal(syscall.SIGTERM) }
	return errors.Join(shellError(shell.Run()), db.Close())
}

// untilTerminated returns a context that only SIGTERM ends. The terminal sends Ctrl-C to psql as well. psql then cancels its
// statement and goes on, so the database must keep running.
func untilTerminated(ctx context.Context) (context.Context, context.CancelFunc) {
	interrupts := make(chan os.Signal, 1) // never read: Notify alone keeps Ctrl-C from ending this program
	signal.Notify(interrupts, os.Interrupt)
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), syscall.SIGTERM)
	return ctx, func() {
		stop()
		signal.Stop(interrupts)
	}
}

// shellError returns how psql ended. psql has printed the cause itself.
func shellError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Errorf("psql ended: %w", exit)
	}
	return err
}
