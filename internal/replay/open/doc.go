// Package open is the command open. It opens the page of a server in a browser, or prints how to open it.
//
// # What it guarantees
//
//   - If no server of the record runs, the command starts one, which runs until the command ends. Other commands find it.
//   - No process has the code of a link in its arguments. A file of mode 0600 redirects the browser to the link. The command
//     removes the file after the code was used, or has expired.
//   - Without a display, or with --output json, the command prints the link and starts no browser.
//
// # Goroutines
//
// The server's goroutines end with the command. One goroutine waits for the program that opens browsers. That program can be
// the browser itself, so the command does not wait for it.
package open
