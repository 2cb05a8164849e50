package help_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/help"
)

const long = `The first sentence of this text ends after the
line end. The second sentence makes the paragraph longer than a line of eighty columns.
A list follows:
  - an indented line stays as it is, even if it is much longer than a line of eighty columns
  - so does a short one
The text goes on.

	a command after a tab`

// bakery is a program with one command.
func bakery() *cobra.Command {
	nothing := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "bakery", Short: "Bake", SilenceErrors: true, SilenceUsage: true}
	root.PersistentFlags().String("oven", "", "the oven that bakes; if there are several ovens, the one that is hot is taken first")
	bread := &cobra.Command{
		Use: "bread (LOAF[,LOAF…] | DOUGH) [--for guests] [--at hour] [--with butter]", Aliases: []string{"loaf"}, Long: long, RunE: nothing,
		Short:   "Bake bread, from a dough that has rested for a whole night in a cool place",
		Example: "  # A comment of an example that is longer than eighty columns is not wrapped, like commands\n  bakery bread",
	}
	root.AddCommand(bread)
	root.CompletionOptions.DisableDefaultCmd = true
	help.Fit(root)
	return root
}

func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := bakery()
	root.SetOut(&out)
	root.SetArgs(args)
	require.NoError(t, root.Execute())
	return out.String()
}

const breadHelp = `The first sentence of this text ends after the line end. The second sentence
makes the paragraph longer than a line of eighty columns. A list follows:
  - an indented line stays as it is, even if it is much longer than a line of eighty columns
  - so does a short one
The text goes on.

  a command after a tab

Usage:
  bakery bread (LOAF[,LOAF…] | DOUGH) [--for guests] [--at hour] [--with butter]
    [flags]

Aliases:
  bread, loaf

Examples:
  # A comment of an example that is longer than eighty columns is not wrapped, like commands
  bakery bread

Flags:
  -h, --help   help for bread

Global Flags:
      --oven string   the oven that bakes; if there are several ovens, the
                      one that is hot is taken first
`

func TestParagraphsAndFlagsAreWrappedAndIndentedLinesAreNot(t *testing.T) {
	require.Equal(t, breadHelp, helpOf(t, "bread", "--help"))
	require.Equal(t, breadHelp, helpOf(t, "help", "bread"))
}

func TestTheDescriptionsOfCommandsAreWrapped(t *testing.T) {
	require.Equal(t, `Bake

Usage:
  bakery [command]

Available Commands:
  bread       Bake bread, from a dough that has rested for a whole night in a
              cool place
  help        Help about any command

Flags:
  -h, --help          help for bakery
      --oven string   the oven that bakes; if there are several ovens, the
                      one that is hot is taken first

Use "bakery [command] --help" for more information about a command.
`, helpOf(t, "--help"))
}

func TestUsageIsTheHelpWithoutItsText(t *testing.T) {
	bread, _, err := bakery().Find([]string{"bread"})
	require.NoError(t, err)
	bread.InitDefaultHelpFlag()
	_, usage, _ := strings.Cut(breadHelp, "tab\n\n")
	require.Equal(t, usage, bread.UsageString())
}

func TestLinesAreAsWideAsTheTerminal(t *testing.T) {
	for columns, want := range map[uint16]string{
		50:  "The first sentence of this text ends after the",
		80:  "The first sentence of this text ends after the line end. The second sentence",
		90:  "The first sentence of this text ends after the line end. The second sentence makes the",
		200: "The first sentence of this text ends after the line end. The second sentence makes the paragraph",
	} {
		first, _, _ := strings.Cut(helpAt(t, columns), "\r\n")
		require.Equal(t, want, first)
	}
}

// helpAt returns what a terminal shows.
func helpAt(t *testing.T, columns uint16) string {
	t.Helper()
	eyes, screen, err := pty.Open()
	require.NoError(t, err)
	require.NoError(t, pty.Setsize(screen, &pty.Winsize{Rows: 24, Cols: columns}))
	seen := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(eyes) // the read fails when the screen is closed
		_ = eyes.Close()
		seen <- string(text)
	}()
	root := bakery()
	root.SetOut(screen)
	root.SetArgs([]string{"bread", "--help"})
	require.NoError(t, root.Execute())
	require.NoError(t, screen.Close())
	return <-seen
}
