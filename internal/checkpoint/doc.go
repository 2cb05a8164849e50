// Package checkpoint is the codec of checkpoints: compressed copies of all objects that were live at a seq.
//
// A checkpoint is a directory and blocks. A block holds some hundred records, sorted by stream, namespace and name, in one
// zstd frame: neighbours resemble each other, and a reader that wants one resource or namespace takes the blocks that the
// directory names. The directory is the block with number 0 and holds no records.
//
// # What it guarantees
//
//   - What was encoded is what is decoded, whatever bytes are in it.
//   - Decode gives an error for anything else than a block, and takes no more than MaxBlock of memory for it.
//
// The package starts no goroutine. An Encoder belongs to one goroutine; a Decoder may be used by many at once.
package checkpoint
