// Package web is the page of the timeline: HTML, script and style, embedded. It holds no data.
//
// # What it guarantees
//
//   - Handler serves the files of web/dist, gzipped once when the program starts, each with an ETag of its content.
//   - The page asks its own origin only. Nothing in it is inline, so the policy `default-src 'none'` with 'self' for scripts, styles, images
//     and requests suffices. The door (internal/serve/page) sends that policy.
//   - Text from a cluster is set as text, never as HTML.
//   - web/dist is what web/src and web/vendor give. `make web` builds it with esbuild, as a Go module; `make lint` compares.
//
// # What it rejects
//
// Any method but GET and HEAD, and any path but `/`, `/app.js`, `/app.css` and `/icon.svg`. The page keeps its state behind the `#` of its URL, so it has one
// path. A server would not see the state, and no log of a proxy holds a name of an object or a code.
package web
