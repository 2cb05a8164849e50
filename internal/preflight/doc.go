// Package preflight tries what a recorder needs before it is started.
//
// [Check] looks at the cluster, the rights there, the database and the redaction key. It changes nothing in the cluster and in the
// database. It asks for up to eight rights at once. It returns when all of its goroutines have ended.
package preflight
