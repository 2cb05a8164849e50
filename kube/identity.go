package kube

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// namespaces is the resource with the object kube-system, whose UID identifies a cluster.
var namespaces = Resource{Version: "v1", Name: "namespaces", Kind: "Namespace"}

// ClusterUID returns the identity of the cluster: the UID of namespace kube-system. That UID is unique to the cluster and
// does not change while the cluster exists.
func (c *Client) ClusterUID(ctx context.Context) (types.UID, error) {
	o, err := c.ListWatch(namespaces, "").Get(ctx, "", metav1.NamespaceSystem)
	switch {
	case apierrors.IsForbidden(err):
		return "", fmt.Errorf("the cluster cannot be identified: namespace kube-system may not be read; add this rule to the recorder's ClusterRole: "+
			`{apiGroups: [""], resources: ["namespaces"], verbs: ["get"]}: %w`, err)
	case apierrors.IsNotFound(err):
		return "", fmt.Errorf("the cluster cannot be identified: %s has no namespace kube-system: %w", c.Host(), err)
	case err != nil:
		return "", fmt.Errorf("the cluster cannot be identified at %s: %w", c.Host(), err)
	case o.UID == "":
		return "", errors.New("the cluster cannot be identified: namespace kube-system has no UID")
	}
	return o.UID, nil
}
