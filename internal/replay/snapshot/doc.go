// Package snapshot is the command snapshot. It writes the cluster at one instant to files, an archive or standard output.
package snapshot
