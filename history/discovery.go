package history

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// groupList names only the members of aggregated discovery (APIGroupDiscoveryList of apidiscovery.k8s.io) that are needed.
// Recorded documents may be older or newer than any library.
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

// Discovery lists the resources that the server served at that time, from the recorded discovery. It orders them by group,
// then by version in the server's order of preference, then by name. Resources of custom resource definitions are included.
// If no discovery is recorded, Discovery derives the resources from the streams. The list then lacks short names,
// categories, and resources that were never listed.
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

// streamedResources derives resources from the streams.
func (s Server) streamedResources(ctx context.Context) ([]Resource, error) {
	set, err := s.view.streamSet(ctx)
	if err != nil {
		return nil, err
	}
	var all []Resource
	for _, stream := range set.all {
		if slices.ContainsFunc(all, func(o Resource) bool { return o.Group == stream.Group && o.Resource == stream.Resource }) {
			continue // another scope of the same resource
		}
		all = append(all, Resource{
			Group: stream.Group, Version: stream.Version, Resource: stream.Resource, Kind: stream.Kind, Singular: strings.ToLower(stream.Kind),
			Verbs: []string{"list", "watch"}, Namespaced: stream.Namespaced, Preferred: true,
		})
	}
	return all, nil
}
