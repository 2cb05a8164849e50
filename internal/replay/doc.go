// Package replay is the program of that name: it reads the record and answers as kubectl would have answered then.
//
// # What it guarantees
//
//   - No answer needs the API server, but that of verify --against-cluster. The record is only read.
//   - get is kubectl's own get: its flags, its printers, its sorting and its messages, over a transport that answers from the record
//     at one instant. All that one command prints is of one instant.
//   - The answer is standard output; notes (gaps, estimates, the end of the record), progress and errors are standard error. A note is
//     printed once.
//   - What cannot be folded is named by its seq, the rest is answered, and the exit code says that not all is there.
//   - SIGINT and SIGTERM end a command at once, with 130 and 143; of log --follow they are the end, with 0. What was printed until then
//     is whole lines of a table, but may be half of a JSON or YAML text: nothing is printed before it is complete, except by snapshot
//     and by what follows the record.
//
// # What it rejects, and why
//
// A setting, instant, resource, index, column or format that it does not know: the error says which ones there are. It does not write
// into a directory that holds something, unless told to.
//
// # Knobs
//
// Flags, variables REPLAY_… and the file kuberewind/replay.yaml, in this order; then what the recorder on this machine is told about
// where the record is: RECORDER_DATABASE, RECORDER_DATA_DIR and its file. See Settings.
//
// # Goroutines
//
// None outlive a command.
package replay
