// Package open is the command open. It opens the page of a server in a browser, or says how to.
//
// # What it guarantees
//
//   - If no server of the record runs, one runs until the command ends. Other commands find it.
//   - The code of a link stands in no process's arguments. A file of mode 0600 leads the browser to the link. It is removed when the
//     code was used, or has expired.
//   - Without a display, or with --output json, the link is printed and no browser is started.
//
// # Goroutines
//
// The server's, which end with the command. One waits for the program that opens browsers. That program can be the browser itself, so the
// command does not wait for it.
package open
