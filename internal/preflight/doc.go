// Package preflight checks everything that a recorder needs, before it is started.
//
// [Check] checks the cluster, the rights there, the database and the redaction key. It changes nothing in the cluster and in the database.
// It sends up to eight access reviews at once. It returns when all of its goroutines have ended.
package preflight
