// Package folding says which changes a person sees, and which are only counted.
//
// It looks at what changed, never at who changed it: see package change. Commands share its flags and its settings.
package folding
