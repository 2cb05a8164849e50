package reflector

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
)

// page is one page of a list.
type page struct {
	items       []any
	rv          string // the list's resource version
	next        string // the token that continues the list, "" for the last page
	remaining   *int64 // how many items the further pages have, if the server says so
	bytes       int64  // the sum of the items' sizes
	undecodable []error
}

// pageOf splits a list object into its parts. It reports items without metadata together with the items that the list
// itself could not decode.
func pageOf(list runtime.Object) (page, error) {
	if list == nil {
		return page{}, fmt.Errorf("the answer is empty")
	}
	if isTable(list) {
		return page{}, fmt.Errorf("the answer is a Table: the client must not ask for tables")
	}
	metadata, err := meta.ListAccessor(list)
	if err != nil {
		return page{}, fmt.Errorf("the answer (%T) is not a list: %w", list, err)
	}
	objects, err := meta.ExtractListWithAlloc(list)
	if err != nil {
		return page{}, fmt.Errorf("the answer (%T) is not a list: %w", list, err)
	}
	p := page{rv: metadata.GetResourceVersion(), next: metadata.GetContinue(), remaining: metadata.GetRemainingItemCount(), items: make([]any, 0, len(objects))}
	if partial, ok := list.(interface{ Undecodable() []error }); ok {
		p.undecodable = partial.Undecodable()
	}
	for i, object := range objects {
		if _, err := meta.Accessor(object); err != nil {
			p.undecodable = append(p.undecodable, fmt.Errorf("item %d of the page: %w", i, err))
			continue
		}
		p.items = append(p.items, object)
		p.bytes += sizeOf(object)
	}
	return p, nil
}

// pageSize computes how many objects to request in one page.
type pageSize struct {
	most  int64 // Reflector.WatchListPageSize
	bytes int64 // Options.PageBytes
	fits  int64 // adapted to the size of pages; 0: most
}

// limit returns how many objects the next page requests.
func (s *pageSize) limit() int64 {
	if s.fits != 0 {
		return s.fits
	}
	return s.most
}

// adapt sets how many objects the next pages request. If they are like this page, they stay within bytes.
func (s *pageSize) adapt(p page) {
	if p.bytes == 0 {
		return
	}
	fit := s.bytes * int64(len(p.items)) / p.bytes
	s.fits = min(max(fit, 1), s.most)
}
