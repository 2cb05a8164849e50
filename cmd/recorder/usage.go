package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// usageError is a mistake in the command line or in the configuration.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// mistake wraps a usage error and names the command's help.
func mistake(cmd *cobra.Command, err error) error {
	return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
}

// noArguments refuses arguments. If the command has subcommands, the argument is reported as an unknown command.
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

// databaseSettings are the settings of commands that only use the database.
var databaseSettings = []string{"config", "database", "data-dir", "log-format", "log-level"}

// statusSettings are databaseSettings and the directory of the spool.
var statusSettings = append(slices.Clone(databaseSettings), "spool-dir")

// concerns limits the help of a command to the settings that it uses. The command still accepts all settings, because all commands
// read the same configuration.
func concerns(cmd *cobra.Command, settings ...string) {
	cmd.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { f.Hidden = !slices.Contains(settings, f.Name) })
		cmd.Parent().HelpFunc()(cmd, args)
	})
}
