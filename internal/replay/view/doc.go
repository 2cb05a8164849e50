// Package view rebuilds the cluster at one instant, for get and snapshot.
//
// It rebuilds only the requested objects. If an object cannot be folded, the View names it, and holds the others.
package view
