package env

import (
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/telemetry"
	"github.com/kuberewind/kuberewind/internal/terminal"
)

// Terminal reports whether a person reads standard output at a terminal, directly or through a pager.
func (e *Env) Terminal() bool { return telemetry.IsTerminal(e.IOStreams.Out) }

// Width returns the columns of the terminal; 0 if standard output is not a terminal.
func (e *Env) Width() int { return terminal.Width(e.IOStreams.Out) }

// Style returns the style of standard output.
func (e *Env) Style() terminal.Style { return terminal.NewStyle(e.colours(e.environ, e.IOStreams.Out)) }

// ErrStyle returns the style of standard error.
func (e *Env) ErrStyle() terminal.Style {
	return terminal.NewStyle(e.colours(e.environ, e.IOStreams.ErrOut))
}

// colours reports whether output has colours, by https://no-color.org: the program's own setting overrides NO_COLOR.
func (s *Settings) colours(environ []string, out io.Writer) bool {
	switch s.Color {
	case "always":
		return true
	case "never":
		return false
	}
	return telemetry.IsTerminal(out) && lookup(environ, "NO_COLOR") == "" && lookup(environ, "TERM") != "dumb"
}

// unpaged lists commands without a pager: their text comes slowly, or is one line, or is for a file, or comes from another
// program.
var unpaged = []string{"exec", "kubeconfig", "serve", "session", "shell", "verify", "version"}

// page starts a pager between the command and a terminal.
func (e *Env) page(cmd *cobra.Command) {
	out, ok := e.IOStreams.Out.(*os.File)
	if !ok || !e.Terminal() || e.NoPager || slices.Contains(unpaged, cmd.Name()) || !forReading(cmd) {
		return
	}
	program := terminal.Program(e.environ)
	if program == nil {
		return
	}
	e.pager = terminal.NewPager(cmd.Context(), out, program, e.environ, e.Quit)
	e.IOStreams.Out = e.pager
	if e.progressTo = e.IOStreams.ErrOut; telemetry.IsTerminal(e.IOStreams.ErrOut) {
		e.progressTo, e.IOStreams.ErrOut = e.pager.Before(e.IOStreams.ErrOut), e.pager.After(e.IOStreams.ErrOut)
		e.log = newLog(e.IOStreams.ErrOut)
	}
}

// forReading reports whether the flags request a text that ends and that a person reads.
func forReading(cmd *cobra.Command) bool {
	value := func(name string) string {
		if f := cmd.Flags().Lookup(name); f != nil {
			return f.Value.String()
		}
		return ""
	}
	return value("follow") != "true" && !strings.HasPrefix(value("output"), "json") && value("format") != "json"
}

// Close ends the pager, if there is one. It reports whether the user closed it before the end of the text.
func (e *Env) Close() (early bool, err error) {
	if e.pager == nil {
		return false, nil
	}
	return e.pager.Close()
}
