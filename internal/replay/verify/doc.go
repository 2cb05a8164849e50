// Package verify is the command verify. It checks the record by itself, and against the cluster.
package verify
