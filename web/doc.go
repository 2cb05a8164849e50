// Package web is the page of the timeline: HTML, script and style, embedded. It holds no data.
//
// # What it guarantees
//
//   - Handler serves the files of web/dist, gzipped once when the program starts, each with an ETag of its content.
//   - The page sends requests only to its own origin. It has no inline code, so the policy `default-src 'none'` with 'self' for scripts,
//     styles, images and requests suffices. Package internal/serve/page sends that policy.
//   - Text from a cluster is set as text, never as HTML.
//   - web/dist is built from web/src and web/vendor. `make web` builds it with esbuild, as a Go module; `make lint` compares it.
//
// # What it rejects
//
// Any method except GET and HEAD, and any path except `/`, `/app.js`, `/app.css` and `/icon.svg`. The page keeps its state after the `#`
// of its URL, so it has one path. Servers do not see the state, so no log of a proxy contains an object's name or a code.
package web
