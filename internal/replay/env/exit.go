package env

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuberewind/kuberewind/internal/mistyped"
)

// An ExitError ends the program with its exit code, and with its message if Err is set.
type ExitError struct {
	Code int
	Err  error // nil: the command has printed everything
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Mistake adds to an error how to print the command's usage.
func Mistake(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w\nSee '%s --help' for usage", err, cmd.CommandPath())
}

// MistakenFlag is Mistake for a flag. It adds the flag that the user perhaps meant, or the values that the flag takes.
func MistakenFlag(cmd *cobra.Command, err error) error {
	return Mistake(cmd, mistyped.Flag(cmd.Flags(), ofFlag(err)))
}

// ofFlag replaces the error of the number parser with the values that the flag takes.
func ofFlag(err error) error {
	var invalid *pflag.InvalidValueError
	var number *strconv.NumError
	if !errors.As(err, &invalid) || !errors.As(err, &number) {
		return err
	}
	takes := "a whole number that the program can hold"
	if invalid.GetFlag().Value.Type() == "bool" {
		takes = "true or false"
	}
	return fmt.Errorf("--%s %q is not %s", invalid.GetFlag().Name, invalid.GetValue(), takes)
}
