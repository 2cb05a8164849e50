// Package exec is the command exec. It runs a program whose Kubernetes clients use the cluster of the past.
package exec
