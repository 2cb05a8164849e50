package kube

import "fmt"

// itemRoom is the memory of an item in addition to its text, in bytes. The shortest text has three bytes.
const itemRoom = 512

// PageTooLargeError is returned if one page of a list takes more than [Options].MaxPageBytes.
type PageTooLargeError struct {
	Resource Resource
	Limit    int64 // in bytes
	Items    int64 // items read before the error
	Asked    int64 // the requested limit, 0 for no limit
}

func (e *PageTooLargeError) Error() string {
	what := fmt.Sprintf("a page of %d objects", e.Asked)
	switch {
	case e.Asked == 0:
		what = "all of it in one page"
	case e.ignoresLimit():
		what = fmt.Sprintf("the server ignores the requested limit of %d objects, and its page", e.Asked)
	}
	return fmt.Sprintf("list of %s: %s takes more than %d bytes, after %d objects (raise --queue-size to allow larger pages, or exclude the resource with --exclude %s)",
		e.Resource, what, e.Limit, e.Items, e.Resource.GroupResource())
}

func (e *PageTooLargeError) ignoresLimit() bool { return e.Asked != 0 && e.Items > e.Asked }

// canBeSmaller reports whether the server may send a smaller page for a smaller limit.
func (e *PageTooLargeError) canBeSmaller() bool { return e.Asked > 1 && !e.ignoresLimit() }

// fitting returns how many objects of the page would have fitted.
func (e *PageTooLargeError) fitting() int64 { return max(e.Items-1, 1) }
