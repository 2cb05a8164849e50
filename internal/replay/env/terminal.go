package env

import (
	"os"

	"golang.org/x/term"

	"github.com/kuberewind/kuberewind/internal/telemetry"
)

// Terminal reports whether a person reads standard output at a terminal.
func (e *Env) Terminal() bool { return telemetry.IsTerminal(e.IOStreams.Out) }

// Width is how many columns the terminal has; 0 if standard output is none.
func (e *Env) Width() int {
	f, ok := e.IOStreams.Out.(*os.File)
	if !ok || !e.Terminal() {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}
