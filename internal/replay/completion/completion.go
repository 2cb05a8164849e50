package completion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/known"
)

// completer completes the command lines of one program.
type completer struct{ env *env.Env }

// A source returns words that complete the typed text. In a list (a,b,c), it gets only the last element.
type source func(r *reading, typed string) (offer, error)

// An offer holds possible words. A word may have a description after a tab.
type offer struct {
	words []string
	more  bool // there are more words
	open  bool // a word can continue, so no space follows it
}

// Register adds completion to root and its commands. The usage line of a command says which arguments it takes.
func Register(root *cobra.Command, e *env.Env) {
	c := &completer{env: e}
	c.flags(root)
	for _, cmd := range root.Commands() {
		c.flags(cmd)
		cmd.ValidArgsFunction = cobra.NoFileCompletions
		if strings.Contains(cmd.Use, "TYPE") {
			cmd.ValidArgsFunction = c.arguments
		}
	}
}

// Prepare prepares commands for completion, if the arguments request it: cobra then parses the flags of the line twice.
func Prepare(root *cobra.Command, args []string) {
	if len(args) == 0 || args[0] != cobra.ShellCompRequestCmd && args[0] != cobra.ShellCompNoDescRequestCmd {
		return
	}
	for _, cmd := range root.Commands() {
		env.LetRepeat(cmd.Flags())
	}
}

// flags adds completion to a command's own flags. It skips flags that already have a completion function.
func (c *completer) flags(cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, has := cmd.GetFlagCompletionFunc(f.Name); has {
			return
		}
		if function := c.flag(cmd, f); function != nil {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, function) // it fails only for an unknown flag or a second function
		}
	})
}

// flag returns the completion of a flag's values; nil for file names.
func (c *completer) flag(cmd *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	if values, ok := valuesOf(cmd.Name(), f.Name); ok {
		return c.values(f, values)
	}
	if f.Name == "cluster" {
		return c.clusters
	}
	if from, ok := sources[f.Name]; ok {
		return c.from(f, from)
	}
	if f.Value.Type() == "string" && slices.Contains(files, f.Name) {
		return nil
	}
	return cobra.NoFileCompletions
}

// from completes a flag with words from the record.
func (c *completer) from(f *pflag.Flag, from source) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		before, last := "", typed
		if isList(f) {
			before, last = splitList(typed)
		}
		return c.offered(cmd, args, before, func(r *reading) (offer, error) { return from(r, last) })
	}
}

// values completes a flag with its fixed values.
func (c *completer) values(f *pflag.Flag, values []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		before, last := "", typed
		if isList(f) {
			before, last = splitList(typed)
		}
		return shown(offer{words: startingWith(values, last)}, before), cobra.ShellCompDirectiveNoFileComp
	}
}

// offered returns words from the record. If reading fails, it returns none.
func (c *completer) offered(cmd *cobra.Command, args []string, before string, ask func(*reading) (offer, error)) ([]string, cobra.ShellCompDirective) {
	found, err := c.read(cmd, args, ask)
	if err != nil {
		cobra.CompDebugln(err.Error(), false)
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	directive := cobra.ShellCompDirectiveNoFileComp
	if found.open {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return shown(found, before), directive
}

// shown returns the words of an offer, each with the text typed before it.
func shown(o offer, before string) []string {
	var words []string
	for _, word := range o.words {
		words = append(words, before+word)
	}
	if o.more {
		words = cobra.AppendActiveHelp(words, fmt.Sprintf("These are the first %d; type more letters to see others.", known.Most))
	}
	return words
}

// Characters that are not allowed in a word from a cluster. Shells run the text in $(), even while they complete the next
// word.
const (
	forShells   = "`$\\\"'(){}<>|&;?!#~^"
	forPatterns = "*[]" // allowed in paths: a shell takes them for a pattern only if a file name matches
)

// harmless returns the words that need no quotes on a command line, and that hold none of the other characters.
func harmless(words []string, others string) []string {
	return slices.DeleteFunc(words, func(word string) bool {
		return word == "" || word[0] == '-' || strings.ContainsFunc(word, func(r rune) bool {
			return r <= ' ' || r > '~' || strings.ContainsRune(forShells, r) || strings.ContainsRune(others, r)
		})
	})
}

// isList reports whether a flag takes several values, separated by commas.
func isList(f *pflag.Flag) bool { return f.Value.Type() == "stringSlice" }

// splitList cuts a list before its last word.
func splitList(typed string) (before, last string) {
	cut := strings.LastIndexByte(typed, ',') + 1
	return typed[:cut], typed[cut:]
}

func startingWith(words []string, typed string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(word string) bool { return !strings.HasPrefix(word, typed) })
}
