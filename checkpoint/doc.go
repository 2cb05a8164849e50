// Package checkpoint makes, merges and reads checkpoints: compressed copies of all objects that were live at a seq.
//
// A checkpoint is a directory and blocks. A block holds some hundred records, sorted by stream, namespace and name, in one zstd
// frame. Neighbours resemble each other, and a reader of one resource or namespace takes only the blocks that the directory
// names. The directory is the block with number 0 and holds no records.
//
// # What it guarantees
//
//   - Decoding gives the same bytes that were encoded, whatever they are.
//   - Decode gives an error for anything but a block, and takes at most MaxBlock of memory for it.
//   - Newest passes over a checkpoint whose blocks do not have their digests. Its content was derived, so nothing is lost.
//   - A Maker reads back and compares all that it wrote, in the transaction that announces it.
//   - The deltas come from a Source, which package history gives. History imports this package to begin rebuilds, and writes nothing.
//
// # Goroutines
//
// The package starts no goroutine. Maker.Run runs on the goroutine that calls it.
// An encoder belongs to one goroutine; a Decoder may be used by many at once.
//
// # Knobs
//
// A Maker has Options.
package checkpoint
