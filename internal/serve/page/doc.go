// Package page is the door of the page: the second listener of the server, the codes of its links, and who may read through it.
//
// # What it guarantees
//
//   - On loopback it speaks plain HTTP, which browsers trust there. On another address it speaks TLS, and the live cluster says who may read.
//   - Host and Origin are checked as for the API of the past: it is the same front (package serve).
//   - HTML, script and style need no token. They hold no data. Every request for data needs a bearer token; no cookie and no query has one.
//   - A link has a code. It is taken once, for 60 seconds, and gives a token that dies with the server. A second use takes that token back.
//   - With live authorization, each request for data asks for the right to list all resources of the cluster. A client without
//     it gets 403, whatever the path and the query name. The query names the cluster that was asked, and no other.
//   - Every answer has the headers by which a browser runs nothing but the page's own script. Answers with data are kept by no cache.
//
// # What it rejects, and why
//
//   - A used, expired or unknown code: 401, with a sentence that names "replay open".
//   - Headers Impersonate-*: 403. A proxy that sends them would lend its own rights to others.
//   - Client certificates and headers that name a user are not read. A browser shows certificates on behalf of every page, and a header
//     proves nothing.
//   - Methods but GET and HEAD for data: 405. Nothing is written but codes, tokens and the clocks of sessions, in memory (I10).
//
// # Knobs
//
// A code lives for 60 s (Lifetime). The newest 1,024 links are known; the token of an older one ends.
//
// # Goroutines
//
// None but those of the listener, which end with Serve.
package page
