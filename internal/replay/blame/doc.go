// Package blame is the command blame. It prints what package blame finds: each line of an object with the version that last set it.
package blame
