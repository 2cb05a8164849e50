package replay

import "github.com/spf13/cobra"

// commands are the subcommands, in the order of the help.
func commands() []func(*Env) *cobra.Command {
	return []func(*Env) *cobra.Command{
		newGetCommand,
		newSnapshotCommand,
		newLogCommand,
		newDiffCommand,
		newCoverageCommand,
		newVerifyCommand,
		newVersionCommand,
	}
}
