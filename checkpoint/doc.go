// Package checkpoint makes, merges and reads checkpoints: compressed copies of all objects that were live at a seq.
//
// A checkpoint consists of a directory and blocks. A block holds up to 256 records, or about 4 MiB, in one zstd frame. They are sorted by
// stream, namespace and name: adjacent records then resemble each other. A reader of one resource or namespace reads only the
// blocks that the directory names. The directory is the block with number 0 and holds no records.
//
// # What it guarantees
//
//   - Decoding returns the same bytes that were encoded, whatever they are.
//   - A Decoder returns an error for bytes that are not a block, and uses at most MaxBlock of memory for them.
//   - Newest skips a checkpoint whose blocks do not have their digests. No data is lost, because a checkpoint is derived.
//   - A Maker reads back and compares all that it wrote, in the transaction that publishes the checkpoint.
//   - The deltas come from a Source, which package history provides. History imports this package to begin rebuilds, and writes
//     nothing.
//
// # Goroutines
//
// The package starts no goroutine. Maker.Run runs on the goroutine that calls it.
// An encoder belongs to one goroutine; several goroutines may use a Decoder at once.
//
// # Knobs
//
//   - Options.EveryDeltas: by default Interval, which grows with the number of living objects.
//   - Options.CheckEvery, one minute: how often Run checks whether a checkpoint is due.
//   - Options.Busy, half: the share of the time in which MakeOne works.
package checkpoint
