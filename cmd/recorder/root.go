package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/help"
	"github.com/kuberewind/kuberewind/internal/mistyped"
	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/internal/version"
)

// streams holds the standard streams of a command.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// program holds what all commands share.
type program struct {
	streams
	environ []string
}

// run runs the command that args name, and returns the exit code.
func run(ctx context.Context, args []string, s streams) int {
	p := &program{streams: s, environ: os.Environ()}
	root := p.command()
	root.SetArgs(args)
	root.SetIn(s.in)
	root.SetOut(s.out)
	root.SetErr(s.err)
	err := root.ExecuteContext(ctx)
	if err != nil {
		fmt.Fprintln(s.err, "recorder:", render.Short(err.Error()))
	}
	return exitCode(err)
}

const longHelp = `recorder follows a Kubernetes cluster and writes every change of every object, once and in order, into PostgreSQL.
It only reads the cluster. The exceptions are a Lease and Events about itself, by default only if it runs in the cluster.
Without arguments it records the cluster of the current kubeconfig context into a PostgreSQL of its own.

Each setting is a flag, a variable RECORDER_… or a key of the configuration file, in this order of precedence.

Exit codes:
  0          done
  1          failed while running
  2          wrong usage or configuration
  3          the cluster or the database cannot be used
  4          another recorder has taken over, or the database has lost commits
  130, 143   ended by a second signal`

func (p *program) command() *cobra.Command {
	root := &cobra.Command{
		Use:           "recorder",
		Short:         "Record every change of a Kubernetes cluster in PostgreSQL",
		Long:          longHelp,
		Version:       version.String(),
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE:          p.run,
	}
	help.Fit(root)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return mistake(cmd, mistyped.Flag(cmd.Flags(), err)) })
	config.Flags(root.PersistentFlags())
	root.AddCommand(p.runCommand(), p.migrateCommand(), p.checkCommand(), p.statusCommand(), p.headCommand(), p.psqlCommand(), p.pruneCommand(), p.eraseCommand(), p.configCommand())
	root.InitDefaultCompletionCmd()
	if shells, _, err := root.Find([]string{"completion"}); err == nil {
		shells.Args, shells.RunE = noArguments, func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	return root
}

// load reads the configuration and makes the logger that the configuration describes.
func (p *program) load(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
	cfg, file, err := config.Load(cmd.Flags(), p.environ)
	if err != nil {
		return config.Config{}, nil, usageError{err}
	}
	level, err := cfg.Level()
	if err != nil {
		return config.Config{}, nil, usageError{err}
	}
	log := p.logger(cfg, level)
	if file != "" {
		if config.Exposed(file) {
			const advice = config.ExposedAdvice
			log.Warn(advice, "file", file)
		}
		log.Debug("configuration file read", "file", file)
	}
	return cfg, log, nil
}

// loadQuietly is load for commands that print an answer. They log only warnings and errors, unless --log-level sets another level.
func (p *program) loadQuietly(cmd *cobra.Command) (config.Config, *slog.Logger, error) {
	cfg, log, err := p.load(cmd)
	if err == nil && cfg.LogLevel == config.Default().LogLevel {
		log = p.logger(cfg, slog.LevelWarn)
	}
	return cfg, log, err
}

// logger makes the logger of the program. It also redirects client-go's messages there, which would go to stderr in another format.
func (p *program) logger(cfg config.Config, level slog.Level) *slog.Logger {
	log := telemetry.NewLogger(p.err, cfg.LogFormat, level)
	klog.SetSlogLogger(log.With("from", "client-go"))
	return log
}
