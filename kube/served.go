package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served reports as an error that a resource is not served yet. One part of the API server can announce it a moment before
// another serves it. The stream finds out about all other errors.
func (c *Client) served(ctx context.Context, r Resource) error {
	_, err := c.ListWatch(r, "").Page(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s is not served yet: %w", r, err)
	}
	return nil
}

// defined reports whether the server has a definition of a resource. It lists, because a recorder has no right to get one.
func (c *Client) defined(ctx context.Context, gr schema.GroupResource) (bool, error) {
	name := fields.OneTermEqualSelector(metav1.ObjectNameField, gr.String())
	list, err := c.ListWatch(definitionResource, "").Page(ctx, metav1.ListOptions{FieldSelector: name.String()})
	if err != nil {
		return false, err
	}
	return len(list.Items)+len(list.Undecodable()) > 0, nil
}
