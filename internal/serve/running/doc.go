// Package running lets a command find the server that another process runs for the same database.
//
// A server publishes a file with its address, CA and token. It lies in XDG_RUNTIME_DIR/kuberewind, or else in the folder serve of
// the data directory. It is removed when the server ends.
//
// # What it guarantees
//
//   - The file is its owner's alone (0600). A file of another owner, or that others can read or write, is not read.
//   - A server that is found has answered just now, under the CA of the file. So a file cannot lead to another server.
//   - A file whose server is gone is removed by the next who looks. A server that is merely slow keeps its file.
//
// # Goroutines
//
// None.
package running
