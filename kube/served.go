package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// served reports as an error that a resource is not served yet: one part of the
// API server can announce it a moment before another serves it. What else may be
// wrong with it is for the stream to find out.
func (c *Client) served(ctx context.Context, r Resource) error {
	_, err := c.ListWatch(r, "").Page(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s is not served yet: %w", r, err)
	}
	return nil
}
