package patch

// An arena allocates memory that is released all at once.
type arena[T any] struct {
	block []T
	used  int
}

// take returns n zero values. Values that were taken before stay at their addresses.
func (a *arena[T]) take(n int) []T {
	if a.used+n > len(a.block) {
		a.block, a.used = make([]T, max(n, 2*len(a.block), 64)), 0
	}
	a.used += n
	return a.block[a.used-n : a.used : a.used]
}

// reset releases everything. No value that was taken may be used after it.
func (a *arena[T]) reset() {
	if len(a.block) > maxKept {
		a.block = nil
	}
	clear(a.block[:min(a.used, len(a.block))])
	a.used = 0
}
