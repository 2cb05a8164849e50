// Package running finds the server that another process runs for the same database.
//
// A server publishes a file with its address, CA and token, in XDG_RUNTIME_DIR/kuberewind, or else in the folder serve of the data
// directory. It removes the file when it ends.
//
// # What it guarantees
//
//   - Only its owner can read the file (0600). Find does not read a file of another owner, or a file that others can read or write.
//   - Find returns a server only after it has answered with the CA of the file. So a file cannot lead to another server.
//   - If the server of a file has ended, Find removes the file. It does not remove the file of a slow server.
//
// # Goroutines
//
// None.
package running
