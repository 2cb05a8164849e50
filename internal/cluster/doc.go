// Package cluster connects to the cluster that is recorded, and knows what a recorder may write there: a Lease and Events, and
// nothing else.
//
// The API server gets 30 s for its first answer.
package cluster
