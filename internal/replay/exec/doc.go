// Package exec is the command exec. It runs a program whose Kubernetes clients work on the cluster as it was.
package exec
