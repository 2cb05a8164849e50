// Package delegate asks the live API of a cluster who calls, and what the caller may read. It decides nothing itself.
//
//	Self     with the caller's own token: SelfSubjectReview and SelfSubjectAccessReview. The server needs no right in the cluster.
//	Server   with the server's identity: TokenReview, the cluster's client CA and SubjectAccessReview. The server needs
//	         system:auth-delegator and extension-apiserver-authentication-reader.
//
// # What it guarantees
//
//   - The path of a request names its cluster, or, of what has no cluster in its path, the parameter "cluster". A token goes to the live API of that cluster, and to no other.
//   - A caller who was authenticated in one cluster reads nothing of another.
//   - A live API that does not answer makes a 503. An answer counts for 10 seconds, so no yes is older.
//   - Tokens are kept in no cache: a keyed hash stands for them. They are in no message and in no log.
//
// # What it rejects, and why
//
//	a cluster without a live API            403: nobody can tell who may read it
//	a URL that names no cluster             401 if several have a live API: the token could go to the wrong one
//	no token                                401
//	a client certificate, with Self         401: the server cannot show it to the live API, only its owner can
//	a live API over HTTP, or one whose      refused at the start: tokens would go to a server that anyone can be
//	certificate is not checked
//
// # Goroutines
//
// None.
package delegate
