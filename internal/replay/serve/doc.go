// Package serve is the command serve. It serves the record to Kubernetes clients until it is ended.
package serve
