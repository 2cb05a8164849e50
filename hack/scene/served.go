package main

import (
	"bytes"
	"context"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/kuberewind/kuberewind/internal/scene/record"
)

// served keeps the discovery and OpenAPI documents of the API server, each time that one has changed.
type served struct {
	client rest.Interface
	newest map[string][]byte // by path
	all    []record.Document
}

func newServed(config *rest.Config) (*served, error) {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	return &served{client: client.RESTClient(), newest: map[string][]byte{}}, nil
}

// acceptAggregated requests all groups and resources in one document.
const acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"

// look requests the documents.
func (s *served) look(ctx context.Context) error {
	for _, path := range []string{"/version", "/api", "/apis"} {
		content, err := s.client.Get().AbsPath(path).SetHeader("Accept", acceptAggregated).DoRaw(ctx)
		if err != nil {
			return err
		}
		if !bytes.Equal(content, s.newest[path]) {
			s.newest[path] = content
			s.all = append(s.all, record.Document{At: time.Now().UTC(), Path: path, Content: content})
		}
	}
	return nil
}
