package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// served returns an error if the server does not serve the resource yet. One part of the API server can announce a resource
// just before another part serves it. served ignores all other errors, because the resource's stream will see them.
func (c *Client) served(ctx context.Context, r Resource) error {
	_, err := c.ListWatch(r, "").Page(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s is not served yet: %w", r, err)
	}
	return nil
}

// defined reports whether the server has a definition of a resource. It lists, because a recorder has no right to get a
// definition.
func (c *Client) defined(ctx context.Context, gr schema.GroupResource) (bool, error) {
	name := fields.OneTermEqualSelector(metav1.ObjectNameField, gr.String())
	list, err := c.ListWatch(definitionResource, "").Page(ctx, metav1.ListOptions{FieldSelector: name.String()})
	if err != nil {
		return false, err
	}
	return len(list.Items)+len(list.Undecodable()) > 0, nil
}
