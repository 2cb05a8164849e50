package kube

import "fmt"

// itemRoom is what an item takes in memory beside its text: the shortest text has three bytes.
const itemRoom = 512

// PageTooLargeError says that one page of a list takes more than [Options].MaxPageBytes.
type PageTooLargeError struct {
	Resource Resource
	Limit    int64 // in bytes
	Items    int64 // that were read until then
	Asked    int64 // the most items that were asked for, 0 for all
}

func (e *PageTooLargeError) Error() string {
	what := fmt.Sprintf("a page of %d objects", e.Asked)
	switch {
	case e.Asked == 0:
		what = "all of it in one page"
	case e.ignoresLimit():
		what = fmt.Sprintf("the server ignores that %d objects were asked for, and its page", e.Asked)
	}
	return fmt.Sprintf("list of %s: %s takes more than %d bytes, after %d objects (raise --queue-size to allow larger pages, or leave the resource out with --exclude %s)",
		e.Resource, what, e.Limit, e.Items, e.Resource.GroupResource())
}

func (e *PageTooLargeError) ignoresLimit() bool { return e.Asked != 0 && e.Items > e.Asked }

// canBeSmaller reports whether the server may send a smaller page if it is asked for fewer objects.
func (e *PageTooLargeError) canBeSmaller() bool { return e.Asked > 1 && !e.ignoresLimit() }

// fitting is how many objects of the page would have fitted.
func (e *PageTooLargeError) fitting() int64 { return max(e.Items-1, 1) }
