// Package chain computes the digests of batches, each of which covers the digest of the batch before.
//
// It is the only place that knows which bytes a digest covers. The sink digests a batch with it when it writes one, an erasure
// when it ends, and package verify when it reads the batch again.
//
// It does no I/O and starts no goroutine. A Digester belongs to one goroutine.
package chain
