// Package serve is the command serve. It serves the record to Kubernetes clients until a signal ends it.
package serve
