package patch

// An arena hands out memory that is taken back all at once.
type arena[T any] struct {
	block []T
	used  int
}

// take gives n zero values. Memory that was taken before stays in its place.
func (a *arena[T]) take(n int) []T {
	if a.used+n > len(a.block) {
		a.block, a.used = make([]T, max(n, 2*len(a.block), 64)), 0
	}
	a.used += n
	return a.block[a.used-n : a.used : a.used]
}

// reset takes everything back. Nothing that was taken may be used any more.
func (a *arena[T]) reset() {
	if len(a.block) > maxKept {
		a.block = nil
	}
	clear(a.block[:min(a.used, len(a.block))])
	a.used = 0
}
