// Package page serves the page: the second listener of the server, the codes of its links, and the check of who may read.
//
// # What it guarantees
//
//   - On loopback it speaks plain HTTP, which browsers trust there. On another address it speaks TLS, and the live cluster decides who
//     may read.
//   - Package serve checks Host and Origin, as for the API of the past.
//   - HTML, script and style need no token, because they contain no data. Every request for data needs a bearer token. Cookies and
//     queries never contain one.
//   - A link has a code. It can be exchanged once, within 60 seconds, for a token that is valid until the server ends. A second use
//     revokes that token.
//   - With live authorization, each request for data needs the right to list all resources of the cluster. Without it, the client gets
//     403 for every path and query. The server sets the query's cluster to the one that it asked.
//   - Every answer has the headers that make a browser run only the page's own script. No cache keeps answers with data.
//
// # What it rejects, and why
//
//   - A used, expired or unknown code: 401, with a message that names "replay open".
//   - Headers Impersonate-*: 403. A proxy that sends them would give its own rights to others.
//   - Client certificates and headers that name a user are ignored. A browser sends certificates for every page, and a header proves
//     nothing.
//   - Methods other than GET and HEAD for data: 405. The server writes only codes, tokens and the clocks of sessions, in memory (I10).
//
// # Knobs
//
// A code is valid for 60 s (Lifetime). The server keeps the newest 1,024 links; the token of an older link becomes invalid.
//
// # Goroutines
//
// Only the listener has goroutines. They end with Serve.
package page
