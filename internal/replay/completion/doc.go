// Package completion tells a shell which words can come next: types, names, namespaces, clusters, managers, paths and forms of output.
//
// # What it guarantees
//
//   - Words are those of the instant that the command line names (--at, or --from and --to and their like), else of now.
//   - An answer has at most known.Most words. A note that the shell shows says that there are more.
//   - A word that a shell would read as a command, or that steers a terminal, is not offered: names come from a cluster.
//   - If something fails, or takes longer than two seconds, it offers nothing and says nothing. No embedded PostgreSQL is started for it.
//
// # What it rejects
//
// Nothing: the command itself says what is wrong.
package completion
