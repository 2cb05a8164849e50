// Package cluster connects to the recorded cluster. It also makes the clients for everything that a recorder writes there: a Lease and
// Events.
//
// The API server has 30 s for its first answer.
package cluster
