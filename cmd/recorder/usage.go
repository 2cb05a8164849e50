package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a mistake in the typed command or in the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// mistake says where to read what the command takes.
func mistake(cmd *cobra.Command, err error) error {
	return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
}

// noArguments refuses arguments. To a command with commands of its own, an argument is a command that it does not have.
func noArguments(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case !cmd.HasAvailableSubCommands():
		return mistake(cmd, fmt.Errorf("%s takes no arguments, and got %q", cmd.CommandPath(), args[0]))
	}
	cmd.SuggestionsMinimumDistance = 2 // letters
	err := fmt.Errorf("there is no command %q", args[0])
	if like := cmd.SuggestionsFor(args[0]); len(like) > 0 {
		err = fmt.Errorf("%w; did you mean %s?", err, strings.Join(like, " or "))
	}
	return mistake(cmd, err)
}

// databaseSettings are what the commands that only use the database heed.
var databaseSettings = []string{"config", "database", "data-dir", "log-format", "log-level"}

// statusSettings are those, and where the spool is.
var statusSettings = append(slices.Clone(databaseSettings), "spool-dir")

// concerns leaves the settings that a command does not heed out of its help. They are accepted all the same: every command reads
// one configuration.
func concerns(cmd *cobra.Command, settings ...string) {
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(settings, f.Name) })
		cmd.Parent().HelpFunc()(cmd, args)
	})
}
