package kube

import (
	"context"
	"encoding/json"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
)

const accessReviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

// Allowed asks the server whether this client may use a verb on all objects of a resource, and returns the server's reason.
// The server does not store the review.
func (c *Client) Allowed(ctx context.Context, verb string, r Resource) (allowed bool, reason string, err error) {
	return c.AllowedOn(ctx, verb, r, "", "")
}

// AllowedOn is Allowed for one object, or for all objects of a namespace if name is empty. If namespace is empty, too, it
// is for all objects.
func (c *Client) AllowedOn(ctx context.Context, verb string, r Resource, namespace, name string) (allowed bool, reason string, err error) {
	review := authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: r.Group, Version: r.Version, Resource: r.Name, Namespace: namespace, Name: name,
		},
	}}
	body, err := json.Marshal(review)
	if err != nil {
		return false, "", err
	}
	answer, err := c.rest.Post().AbsPath(accessReviews).SetHeader("Content-Type", acceptJSON).Body(body).Do(ctx).Raw()
	if err != nil {
		return false, "", explain("access review for "+verb+" "+r.String(), err)
	}
	if err := json.Unmarshal(answer, &review); err != nil {
		return false, "", fmt.Errorf("answer to an access review: %w", err)
	}
	return review.Status.Allowed, review.Status.Reason, nil
}
