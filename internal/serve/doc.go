// Package serve is the front of the API of the past and of the page (package page): the listener, and who may pass it.
//
// # What it guarantees
//
//   - Only loopback listens, unless the server is shared. Every connection is TLS: under a CA that lives as long as the server,
//     or with the certificate of a shared server. The page on loopback alone is plain HTTP, because browsers trust loopback.
//   - A request reaches the handler only under an allowed name of the host, and from no other origin. The API also takes
//     what a server such as Headlamp's passes on for its own page. Such a request has a bearer token, and an Origin that is file://
//     or has an allowed name of the host.
//   - The caller has the server's token. That of a shared server is known to its Authenticator (internal/serve/delegate), and that of
//     the page to the page's.
//   - The handler finds the caller in the context (request.UserFrom), and no Authorization header.
//   - At the end, watches are ended first. Other requests have a while to finish.
//
// # What it rejects, and why
//
//   - Plain HTTP: 400, because clients drop their token there. The page on loopback is the exception.
//   - Another Host: 403. A web page that has its own name lead to 127.0.0.1 (DNS rebinding) sends its own name.
//   - Another Origin: 403. Browsers let every web page open WebSockets to every host. The token is no proof of a good
//     page: Headlamp's server adds it to the WebSockets of any page that reaches the server. So the API looks at the host in the Origin,
//     too. It trusts two kinds of pages with that: those at allowed hosts, on any port, and files that the user opens. The page trusts none.
//   - No token, or another one: 401.
//   - --listen at another address is refused at the start, unless the server is shared.
//   - A header or URL above 128 KiB: 431. If a body is above 3 MiB, the handler's read fails.
//
// There is no CORS, and nothing is compressed: both ends are one machine.
//
// # Goroutines
//
// Serve runs until its context ends, and waits for what it started.
package serve
