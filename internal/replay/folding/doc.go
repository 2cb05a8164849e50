// Package folding decides which changes a command shows, and which it only counts.
//
// It decides by what changed, never by who changed it: see package change. Commands share its flags and its settings.
package folding
