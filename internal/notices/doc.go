// Package notices writes Events about the recorder into its cluster: gaps that open and close, and a database that is behind.
//
// Gaps are collected for five seconds, so if a hundred streams have the same gap at once, one Event reports it for each cause. The
// recorder records these Events as deltas. No delta causes a notice, so Events cannot cause more Events. [Notices.Follow] belongs to the
// goroutine that calls it.
package notices
