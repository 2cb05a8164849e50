// Package shell is the command shell. It runs a shell in which kubectl works on the cluster as it was.
package shell
