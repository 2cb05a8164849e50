// Package serve is the front of the API of the past and of the page (package page): the listener, and the check of each request.
//
// # What it guarantees
//
//   - The server listens only on loopback, unless it is shared. Every connection is TLS: with a CA that is valid until the server ends,
//     or with the certificate of a shared server. Only the page on loopback is plain HTTP, because browsers trust loopback.
//   - The handler receives only requests with an allowed host name, and with no other Origin. The API also accepts requests that a
//     server such as Headlamp's forwards for its own page. Such a request has a bearer token, and an Origin that is file:// or has an
//     allowed host name.
//   - The caller must have the server's token. For a shared server, its Authenticator checks the caller (internal/serve/delegate), and
//     for the page, the page's Authenticator.
//   - The handler finds the caller in the context (request.UserFrom). It sees no Authorization header.
//   - At the end, the server ends watches first. Other requests have 5 s to finish.
//
// # What it rejects, and why
//
//   - Plain HTTP: 400, because clients drop their token there. The page on loopback is the exception.
//   - Another Host: 403. If a web page resolves its own name to 127.0.0.1 (DNS rebinding), its requests have that name as Host.
//   - Another Origin: 403. Browsers let every web page open WebSockets to every host. The token does not prove which page it is:
//     Headlamp's server adds it to the WebSockets of any page that reaches the server. Therefore, the API also checks the host in the
//     Origin. It accepts two kinds of pages: those at allowed hosts, on any port, and files that the user opens. The page accepts neither.
//   - No token, or another token: 401.
//   - --listen at another address is refused at the start, unless the server is shared.
//   - A header or URL above 128 KiB: 431. If a body is above 3 MiB, the handler's read fails.
//
// There is no CORS and no compression, because client and server usually run on one machine.
//
// # Goroutines
//
// Serve runs until its context ends, and waits for all goroutines that it started.
package serve
