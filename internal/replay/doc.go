// Package replay is the program replay. It reads the record, and answers like kubectl at an instant of the past.
//
// # What it guarantees
//
//   - Only verify --against-cluster needs the API server. The program never writes to the record.
//   - get is kubectl's own get: its flags, its printers, its sorting and its messages, over a transport that answers from
//     the record at one instant. All output of one command is from one instant.
//   - Standard output is the answer. Notes (gaps, estimates, the end of the record), progress and errors go to standard
//     error. The program prints a note once.
//   - If a delta cannot be folded, the program names its seq, answers the rest, and returns an exit code for an incomplete
//     answer.
//   - SIGINT and SIGTERM end a command at once, with 130 and 143; they end log --follow with 0. The output then has whole
//     lines of a table, but may have half of a JSON or YAML text. Only snapshot, and commands that follow the record, print
//     before the answer is complete.
//
// # What it rejects, and why
//
// It rejects an unknown setting, instant, resource, index, column or format; the error lists the valid ones. Without
// --force, it does not write into a directory that is not empty.
//
// # Knobs
//
// Precedence: flags, then variables REPLAY_…, then the file kuberewind/replay.yaml. If none names the record, the settings
// of the recorder on this machine do: RECORDER_DATABASE, RECORDER_DATA_DIR and its file. See Settings.
//
// # Goroutines
//
// No goroutine outlives a command.
package replay
