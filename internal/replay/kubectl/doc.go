// Package kubectl runs the code of kubectl's own commands on the record. It provides their clients, and the writers for
// their output.
package kubectl
