package reflector

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// pageTimeout is how long one page may take. Servers give up after one minute.
const pageTimeout = 5 * time.Minute

// page is one page of a list.
type page struct {
	items       []any
	rv          string // the list's resource version
	next        string // the token that continues the list, "" for the last page
	remaining   *int64 // how many items the further pages have, if the server says so
	bytes       int64  // what the items say they weigh
	undecodable []error
}

// fetch asks for a page; next is "" for the first one.
func (r *Reflector) fetch(ctx context.Context, limit int64, next string) (page, error) {
	ctx, cancel := context.WithTimeout(ctx, pageTimeout)
	defer cancel()
	list, err := r.source.ListWithContext(ctx, metav1.ListOptions{Limit: limit, Continue: next})
	if err != nil {
		return page{}, err
	}
	p, err := r.understand(list)
	if err != nil {
		return page{}, &failure{kind: unusableFailure, err: err}
	}
	r.adapt(p)
	r.options.Hooks.ListPage(len(p.items), p.bytes)
	if len(p.undecodable) > 0 {
		r.options.Hooks.Undecodable(len(p.undecodable))
		r.log.ErrorContext(ctx, "items of a list could not be decoded", "items", undecodableItems(p.undecodable))
	}
	return p, nil
}

// understand takes a list object apart. Items without metadata are left out and
// confessed with those that the list itself could not decode.
func (r *Reflector) understand(list runtime.Object) (page, error) {
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
	if confessing, ok := list.(interface{ Undecodable() []error }); ok {
		p.undecodable = confessing.Undecodable()
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

// adapt sets how many objects the next pages ask for, so that they stay within
// PageBytes if they are like this one.
func (r *Reflector) adapt(p page) {
	if p.bytes == 0 {
		return
	}
	fit := r.options.PageBytes * int64(len(p.items)) / p.bytes
	r.pageLimit = min(max(fit, 1), r.WatchListPageSize)
}
