package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The members of aggregated discovery (APIGroupDiscoveryList of apidiscovery.k8s.io) that are read. Recorded texts are older
// and newer than any library, so that only what is needed is named.
type groupList struct {
	Items []struct {
		Metadata struct{ Name string }
		Versions []struct {
			Version   string
			Resources []struct {
				Resource         string
				ResponseKind     *struct{ Kind string }
				Scope            string
				SingularResource string
				ShortNames       []string
				Categories       []string
				Verbs            []string
			}
		}
	}
}

// Discovery lists the resources that the server served at that time, from the recorded discovery. They are ordered by group, by
// version as the server ordered them, preferred first, and by name. Resources of custom resource definitions are among them.
// Without recorded discovery, the streams tell the resources: then short names, categories and resources that were never listed
// are missing.
func (s Server) Discovery(ctx context.Context, at time.Time) ([]Resource, error) {
	var all []Resource
	for _, path := range []string{"/api", "/apis"} {
		d, found, err := s.Document(ctx, at, path)
		if err != nil {
			return nil, err
		}
		if !found {
			continue
		}
		resources, err := parseDiscovery(d.Content)
		if err != nil {
			return nil, fmt.Errorf("discovery at %s, as recorded at %s: %w", path, stamp(d.ObservedAt), err)
		}
		all = append(all, resources...)
	}
	if len(all) > 0 {
		return all, nil
	}
	return s.streamedResources(ctx)
}

func parseDiscovery(text []byte) ([]Resource, error) {
	var list groupList
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, err
	}
	var all []Resource
	for _, group := range list.Items {
		for i, version := range group.Versions {
			for _, served := range version.Resources {
				resource := Resource{
					Group: group.Metadata.Name, Version: version.Version, Resource: served.Resource, Singular: served.SingularResource,
					ShortNames: served.ShortNames, Categories: served.Categories, Verbs: served.Verbs,
					Namespaced: served.Scope == "Namespaced", Preferred: i == 0,
				}
				if served.ResponseKind != nil {
					resource.Kind = served.ResponseKind.Kind
				}
				all = append(all, resource)
			}
		}
	}
	return all, nil
}

// streamedResources makes resources of streams.
func (s Server) streamedResources(ctx context.Context) ([]Resource, error) {
	set, err := s.view.streamSet(ctx)
	if err != nil {
		return nil, err
	}
	var all []Resource
	for _, stream := range set.all {
		if slices.ContainsFunc(all, func(o Resource) bool { return o.Group == stream.Group && o.Resource == stream.Resource }) {
			continue // another scope of it
		}
		all = append(all, Resource{
			Group: stream.Group, Version: stream.Version, Resource: stream.Resource, Kind: stream.Kind, Singular: strings.ToLower(stream.Kind),
			Verbs: []string{"list", "watch"}, Namespaced: stream.Namespaced, Preferred: true,
		})
	}
	return all, nil
}
