package delta

import "k8s.io/apimachinery/pkg/util/resourceversion"

// I4: resource versions are compared within one resource, with apimachinery's helper. It orders decimal numbers from 1
// on. Aggregated API servers may use other versions: the helper knows only whether two of these are equal.

// Ordered reports whether a resource version has a place in the order.
func Ordered(version string) bool {
	_, known := Compare(version, version)
	return known
}

// Compare returns -1, 0 or 1 if a is earlier than, equal to or later than b. It returns false if their order is not known.
func Compare(a, b string) (order int, known bool) {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return order, err == nil
}

// Precedes reports whether a is known to be earlier than b.
func Precedes(a, b string) bool {
	order, known := Compare(a, b)
	return known && order < 0
}

// Passes reports whether a moves a stream at b forward. If the order of two versions is not known, their order of
// arrival counts.
func Passes(a, b string) bool {
	order, known := Compare(a, b)
	return known && order > 0 || !known && a != b
}

// Later returns the later of two versions. b has arrived after a. Either may be empty.
func Later(a, b string) string {
	if b != "" && Passes(b, a) {
		return b
	}
	return a
}
