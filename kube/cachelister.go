package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kuberewind/kuberewind/internal/paging"
)

// extractLister is a ListWatch whose lists hold extracts only. If its context ends, it cancels a list; upstream's reflector
// does not.
type extractLister[T any] struct {
	*ListWatch
	cache *extractCache[T]
	ctx   context.Context
	pages paging.Guard // of the current list; upstream's pager requests one page at a time
}

// extracted is an item of an extractList.
type extracted[T any] struct {
	Object
	extract *extract[T]
}

// extractList is the list type of an extractLister.
type extractList[T any] struct {
	metav1.TypeMeta
	metav1.ListMeta
	Items []*extracted[T]
}

// DeepCopyObject implements runtime.Object. The copy shares the items, because they never change.
func (l *extractList[T]) DeepCopyObject() runtime.Object {
	c := *l
	return &c
}

// ListWithContext implements cache.ListerWithContext. The list is always consistent: it ignores the resource version that
// the reflector requests, and is not older than the server's state.
func (l *extractLister[T]) ListWithContext(_ context.Context, options metav1.ListOptions) (runtime.Object, error) {
	options.ResourceVersion, options.ResourceVersionMatch = "", ""
	page, err := l.Page(l.ctx, options)
	if err != nil {
		return nil, err
	}
	if options.Continue == "" {
		l.pages = paging.Guard{}
	}
	if page.Continue != "" {
		if err := l.pages.Next(page.Continue); err != nil {
			return nil, fmt.Errorf("list of %s: %w", l.resource, err)
		}
	}
	list := &extractList[T]{TypeMeta: page.TypeMeta, ListMeta: page.ListMeta}
	for _, o := range page.Items {
		if _, e := l.cache.extract(o); e != nil {
			list.Items = append(list.Items, &extracted[T]{Object{TypeMeta: o.TypeMeta, ObjectMeta: o.ObjectMeta}, e})
		}
	}
	for _, err := range page.Undecodable() {
		l.cache.log.Error("cannot read a definition or an APIService; its resource is not followed", "error", err)
	}
	return list, nil
}

// List implements cache.Lister.
func (l *extractLister[T]) List(options metav1.ListOptions) (runtime.Object, error) {
	return l.ListWithContext(l.ctx, options)
}
