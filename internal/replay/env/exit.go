package env

import (
	"fmt"

	"github.com/spf13/cobra"
)

// An ExitError ends the program with a code of its own, and with what it has to say, if anything.
type ExitError struct {
	Code int
	Err  error // nil: all was said
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Mistake says where to read what the command takes.
func Mistake(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w\nSee '%s --help' for usage", err, cmd.CommandPath())
}
