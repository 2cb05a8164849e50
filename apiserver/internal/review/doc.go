// Package review answers the questions that clients ask an API server about rights and identity, for one instant of the record.
//
//	SelfSubjectAccessReview    may I?             kubectl auth can-i
//	SelfSubjectRulesReview     what may I?        kubectl auth can-i --list
//	SelfSubjectReview          who am I?          kubectl auth whoami
//	SubjectAccessReview        may this subject?
//	LocalSubjectAccessReview   the same, in one namespace
//
// A question has one of two subjects:
//
//   - The caller, if the request has no Impersonate headers. Options.Authorize decides about reads. Every write is denied, so that k9s
//     and Headlamp hide their buttons.
//   - A subject of the cluster: from the Impersonate headers (--as), or from a SubjectAccessReview. Kubernetes' own RBAC authorizer
//     answers from the roles and bindings that were recorded at the instant. The caller needs the right to list them.
//
// # What it guarantees
//
//   - Kubernetes' own code decodes the bodies (JSON, YAML, protobuf), validates them, and evaluates RBAC. Answers are JSON.
//   - The server calls Options.Authorize before it reads anything about a subject of the cluster.
//   - An answer from RBAC says that only RBAC is on record. A real server also asks webhooks and the Node authorizer, and always allows
//     system:masters. If a kind of RBAC objects is not on record, the answer names it as an evaluation error.
//   - If the record cannot be read, or if Authorize cannot decide, the answer is an error. It is never a yes or a no.
//
// # What it rejects, and why
//
//   - Impersonate headers on a SubjectAccessReview, with 403: the body names the subject.
//   - Bodies over 1 MiB, with 413. Malformed ones and other kinds get 400, invalid ones 422, unknown formats 415, as from a real server.
//
// It starts no goroutine and keeps no state between requests.
package review
