// Package verify is the command verify. It checks that the record holds, by itself and against the cluster.
package verify
