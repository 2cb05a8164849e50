package field

import "slices"

// WithinArray reports whether an element of an array is on the path.
func (p Path) WithinArray() bool {
	return slices.ContainsFunc(p, func(s step) bool { return s.place >= 0 })
}
