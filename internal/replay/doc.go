// Package replay is the program of that name. It reads the record and answers as kubectl would have answered then.
//
// # What it guarantees
//
//   - Only verify --against-cluster needs the API server. The record is only read.
//   - get is kubectl's own get: its flags, its printers, its sorting and its messages, over a transport that answers from the
//     record at one instant. All that one command prints is of one instant.
//   - Standard output is the answer. Notes (gaps, estimates, the end of the record), progress and errors go to standard
//     error. A note is printed once.
//   - A delta that cannot be folded is named by its seq, the rest is answered, and the exit code says that something is
//     missing.
//   - SIGINT and SIGTERM end a command at once, with 130 and 143; they end log --follow with 0. The output until then is
//     whole lines of a table, but may be half of a JSON or YAML text. Only snapshot, and commands that follow the record,
//     print before the answer is complete.
//
// # What it rejects, and why
//
// It rejects a setting, instant, resource, index, column or format that it does not know; the error lists the valid ones. It
// does not write into a directory that is not empty, unless told to.
//
// # Knobs
//
// Flags come first, then variables REPLAY_…, then the file kuberewind/replay.yaml. Last comes the place of the record in the
// settings of the recorder on this machine: RECORDER_DATABASE, RECORDER_DATA_DIR and its file. See Settings.
//
// # Goroutines
//
// None outlive a command.
package replay
