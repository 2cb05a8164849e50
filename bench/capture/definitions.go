package capture

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/version"

	"github.com/kuberewind/kuberewind/bench/data"
)

// announce passes on which resource an event of a definition has made.
func (c *Capture) announce(ctx context.Context, f *follower, text []byte) error {
	if f.resource.Resource != "customresourcedefinitions" {
		return nil
	}
	var seen struct {
		Object apiextensionsv1.CustomResourceDefinition
	}
	if err := json.Unmarshal(text, &seen); err != nil {
		return err
	}
	resource, ok := defined(&seen.Object)
	if !ok {
		return nil
	}
	select {
	case c.definitions <- resource:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// defined gives the resource of a definition, in the version that discovery prefers, if it is served.
func defined(crd *apiextensionsv1.CustomResourceDefinition) (r data.Resource, ok bool) {
	established := slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
		return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
	})
	if !established || crd.DeletionTimestamp != nil {
		return r, false
	}
	var served []string
	for _, v := range crd.Spec.Versions {
		if v.Served {
			served = append(served, v.Name)
		}
	}
	return data.Resource{
		Group: crd.Spec.Group, Version: slices.MaxFunc(served, version.CompareKubeAwareVersionStrings),
		Resource: crd.Status.AcceptedNames.Plural, Kind: crd.Status.AcceptedNames.Kind, Namespaced: crd.Spec.Scope == apiextensionsv1.NamespaceScoped,
	}, true
}

// followDefined follows what is defined until the capture ends. From its begin on, it alone changes found and files.
func (c *Capture) followDefined(ctx context.Context) error {
	for {
		select {
		case r := <-c.definitions:
			if err := c.followNew(ctx, r); err != nil && !errors.Is(context.Cause(ctx), errStopped) {
				return fmt.Errorf("%s, defined meanwhile: %w", r.Resource, err)
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// serving is how long a server may take to serve an established definition.
const serving = 20 * time.Second

func (c *Capture) followNew(ctx context.Context, r data.Resource) error {
	if slices.ContainsFunc(c.found, func(f data.Resource) bool { return f.Group == r.Group && f.Resource == r.Resource }) {
		return nil
	}
	f := newFollower(r, len(c.found), "")
	err := wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, serving, true, func(ctx context.Context) (bool, error) {
		events, at, err := c.list(ctx, f.index, r, "")
		if len(events) > 0 {
			return false, fmt.Errorf("its first list shows %d objects that no watch has shown; make the capture again", len(events))
		}
		f.at = at
		if errors.Is(err, errNotFound) {
			return false, nil
		}
		return true, err
	})
	if err != nil {
		return err
	}
	c.found = append(c.found, r)
	return c.follow(ctx, f)
}
