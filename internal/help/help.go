// Package help prints the help of cobra commands in lines that fit on a terminal.
//
// Lines are as long as the terminal allows, and at most 100 columns. If the output is not a terminal, they have 80 columns. A text
// of a command consists of paragraphs, which are wrapped again, and of indented lines, which stay as they are: tables and commands to
// copy. The package starts no goroutine and has no knobs.
package help

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/terminal"
)

const (
	usual  = 80  // columns if the output is not a terminal
	widest = 100 // longer lines are hard to read
)

// Fit makes a command and its subcommands print their help in lines that fit.
func Fit(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		out := cmd.OutOrStdout()
		p := page{width: columns(terminal.Width(out))}
		p.about(cmd)
		p.usage(cmd)
		fmt.Fprint(out, p.text.String())
	})
	root.SetUsageFunc(func(cmd *cobra.Command) error {
		out := cmd.OutOrStderr()
		p := page{width: columns(terminal.Width(out))}
		p.usage(cmd)
		_, err := fmt.Fprint(out, p.text.String())
		return err
	})
}

// columns returns the length of lines for the width of a terminal, 0 for no terminal.
func columns(terminal int) int {
	if terminal == 0 {
		return usual
	}
	return min(terminal, widest)
}

// optional matches a flag with its value in a line of usage, such as [--at instant]. It stays on one line.
var optional = regexp.MustCompile(`\[--?[^\[\]]+\]`)

// unbroken is a space at which no line is wrapped.
const unbroken = "\u00a0"

// page is the help of one command. Its sections are cobra's, in cobra's order, without groups and additional help topics.
type page struct {
	width int
	text  strings.Builder
}

func (p *page) about(cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short
	}
	p.text.WriteString(paragraphs(text, p.width) + "\n\n")
}

func (p *page) usage(cmd *cobra.Command) {
	p.text.WriteString("Usage:\n")
	if cmd.Runnable() {
		line := optional.ReplaceAllStringFunc(cmd.UseLine(), func(flag string) string { return strings.ReplaceAll(flag, " ", unbroken) })
		p.item(line, len("    "))
	}
	if cmd.HasAvailableSubCommands() {
		p.item(cmd.CommandPath()+" [command]", len("    "))
	}
	if len(cmd.Aliases) > 0 {
		p.section("Aliases:")
		p.item(cmd.NameAndAliases(), len("    "))
	}
	if cmd.HasExample() {
		p.section("Examples:")
		p.text.WriteString(cmd.Example + "\n")
	}
	p.commands(cmd)
	if cmd.HasAvailableLocalFlags() {
		p.section("Flags:")
		p.text.WriteString(cmd.LocalFlags().FlagUsagesWrapped(p.width))
	}
	if cmd.HasAvailableInheritedFlags() {
		p.section("Global Flags:")
		p.text.WriteString(cmd.InheritedFlags().FlagUsagesWrapped(p.width))
	}
	if cmd.HasAvailableSubCommands() {
		p.text.WriteString("\n" + terminal.Wrap(fmt.Sprintf("Use %q for more information about a command.", cmd.CommandPath()+" [command] --help"), p.width, 0) + "\n")
	}
}

func (p *page) commands(cmd *cobra.Command) {
	if !cmd.HasAvailableSubCommands() {
		return
	}
	p.section("Available Commands:")
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" {
			name := fmt.Sprintf("%-*s ", sub.NamePadding(), sub.Name())
			p.item(name+sub.Short, len("  ")+len(name))
		}
	}
}

func (p *page) section(title string) { p.text.WriteString("\n" + title + "\n") }

// item writes an indented line. If it is too long, its other lines are indented by hanging.
func (p *page) item(line string, hanging int) {
	p.text.WriteString(strings.ReplaceAll(terminal.Wrap("  "+line, p.width, hanging), unbroken, " ") + "\n")
}

// paragraphs wraps the paragraphs of a text. An empty line or an indented line ends a paragraph.
func paragraphs(text string, width int) string {
	var lines []string
	var open bool // whether the last line belongs to a paragraph
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		line = strings.ReplaceAll(strings.TrimRight(line, " "), "\t", "  ")
		inParagraph := line != "" && line[0] != ' '
		if open && inParagraph {
			lines[len(lines)-1] += " " + line
		} else {
			lines = append(lines, line)
		}
		open = inParagraph
	}
	for i, line := range lines {
		if !strings.HasPrefix(line, " ") {
			lines[i] = terminal.Wrap(line, width, 0)
		}
	}
	return strings.Join(lines, "\n")
}
