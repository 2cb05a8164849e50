// Package kubectl runs the code of kubectl's own commands on the record. It has their clients, and writes what they print.
package kubectl
