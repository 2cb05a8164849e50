// Package chain computes the digests of batches. Each digest covers the digest of the previous batch.
//
// Only this package decides which bytes a digest covers. Three callers use it: the sink when it writes a batch, an
// erasure when it ends, and package verify when it reads a batch again.
//
// The package does no I/O and starts no goroutine. A Digester belongs to one goroutine.
package chain
