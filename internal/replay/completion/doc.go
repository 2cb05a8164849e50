// Package completion gives a shell the words that can come next: types, names, namespaces, clusters, managers, paths and
// forms of output.
//
// # What it guarantees
//
//   - Words come from the instant of the command line (--at, or a range such as --from and --to). Without an instant, they
//     come from now.
//   - An answer has at most known.Most words. If there are more, the shell shows a note.
//   - Names of objects are not trusted. The package never offers a word that a shell would run, or that controls a terminal.
//   - If a query fails, or takes longer than two seconds, the package offers nothing and prints nothing. A deadline of the
//     context takes the place of the two seconds.
//   - The package starts no embedded PostgreSQL.
//
// # What it rejects
//
// Nothing: the command itself reports errors.
package completion
