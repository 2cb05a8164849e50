// Package delegate asks the live API of a cluster who the caller is, and what the caller may read. It decides nothing itself.
//
//	Self     with the caller's own token: SelfSubjectReview and SelfSubjectAccessReview. The server needs no right in the cluster.
//	Server   with the server's identity: TokenReview, the cluster's client CA and SubjectAccessReview. The server needs
//	         system:auth-delegator and extension-apiserver-authentication-reader.
//
// # What it guarantees
//
//   - The path of a request names its cluster. If the path has none, the parameter "cluster" does. The token is sent only to the live API
//     of that cluster.
//   - A caller who was authenticated in one cluster reads nothing of another.
//   - If a live API does not answer, the client gets 503. An answer is cached for 10 seconds, so no permission is older.
//   - The cache holds a keyed hash of a token instead of the token. No message and no log has a token.
//
// # What it rejects, and why
//
//	a cluster without a live API            403: there is no way to decide who may read it
//	a URL that names no cluster             401 if several have a live API: the token could be sent to the wrong one
//	no token                                401
//	a client certificate, with Self         401: only the owner of its key can show it to the live API
//	a live API over HTTP, or one whose      refused at the start: any server could receive the tokens
//	certificate is not checked
//
// # Goroutines
//
// None.
package delegate
