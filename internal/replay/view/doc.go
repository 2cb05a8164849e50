// Package view is the cluster at one instant, as get and snapshot show it.
//
// It rebuilds what is asked for and no more. An object that cannot be folded is named; the others are there.
package view
