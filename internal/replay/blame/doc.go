// Package blame is the command blame. It prints the result of package blame: each line of an object with the version that
// last set it.
package blame
