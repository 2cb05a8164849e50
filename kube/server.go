package kube

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"

	"github.com/kuberewind/kuberewind/patch"
)

// Document is one document in which the server describes itself.
type Document struct {
	Path string // the requested path, for example /openapi/v3/apis/apps/v1
	// Hash is the server's own hash for an OpenAPI v3 document, else the digest of the document's canonical form.
	Hash string
	// Body is the text as the server sent it, nil if the caller has this version already.
	Body []byte
}

const (
	acceptJSON = "application/json"
	// acceptAggregated requests all groups and resources in one document.
	acceptAggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList," +
		"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList," + acceptJSON

	openAPIIndex = "/openapi/v3"
)

// Documents returns aggregated discovery (/api and /apis), /version, the index of OpenAPI v3 and its documents, sorted by path.
// have holds the hashes of the caller's documents, by path. Documents with these hashes are returned without a body. OpenAPI
// documents with these hashes are not even fetched.
//
// If a part fails, Documents returns the other parts together with the error.
func (c *Client) Documents(ctx context.Context, have map[string]string) ([]Document, error) {
	var documents []Document
	var errs []error
	var index []byte
	for _, path := range []string{"/api", "/apis", openAPIIndex, "/version"} {
		body, err := c.raw(ctx, path, acceptAggregated)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if path == openAPIIndex {
			index = body
		}
		document, err := ownHash(path, body, have)
		errs = append(errs, err)
		documents = append(documents, document)
	}
	schemas, err := c.schemas(ctx, index, have)
	documents = append(documents, schemas...)
	slices.SortFunc(documents, func(a, b Document) int { return bytes.Compare([]byte(a.Path), []byte(b.Path)) })
	return documents, errors.Join(append(errs, err)...)
}

// ServerVersion returns the release of the API server, such as v1.36.2.
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	body, err := c.raw(ctx, "/version", acceptJSON)
	if err != nil {
		return "", err
	}
	return ParseVersion(body)
}

// ParseVersion reads the release of the API server from its document at /version.
func ParseVersion(document []byte) (string, error) {
	var v struct {
		GitVersion string `json:"gitVersion"`
	}
	if err := json.Unmarshal(document, &v); err != nil {
		return "", fmt.Errorf("/version: %w", err)
	}
	return v.GitVersion, nil
}

// ownHash hashes a document's canonical form, because replicas may use other spaces or another order.
func ownHash(path string, body []byte, have map[string]string) (Document, error) {
	canonical, err := patch.Canonical(body)
	if err != nil {
		return Document{Path: path, Body: body}, fmt.Errorf("%s: %w", path, err)
	}
	digest := patch.Digest(canonical)
	document := Document{Path: path, Hash: hex.EncodeToString(digest[:]), Body: body}
	if have[path] == document.Hash {
		document.Body = nil
	}
	return document, nil
}

// schemas fetches the OpenAPI v3 documents that changed. Each document's address in the index contains its hash.
func (c *Client) schemas(ctx context.Context, index []byte, have map[string]string) ([]Document, error) {
	if index == nil {
		return nil, nil
	}
	var parsed struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(index, &parsed); err != nil {
		return nil, fmt.Errorf("%s: %w", openAPIIndex, err)
	}
	var documents []Document
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(parsed.Paths)) {
		document, err := c.schema(ctx, openAPIIndex+"/"+name, parsed.Paths[name].ServerRelativeURL, have)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		documents = append(documents, document)
	}
	return documents, errors.Join(errs...)
}

func (c *Client) schema(ctx context.Context, path, address string, have map[string]string) (Document, error) {
	parsed, err := url.Parse(address)
	if err != nil {
		return Document{}, fmt.Errorf("%s: address in the index: %w", path, err)
	}
	document := Document{Path: path, Hash: parsed.Query().Get("hash")}
	if document.Hash != "" && have[path] == document.Hash {
		return document, nil
	}
	if document.Body, err = c.raw(ctx, address, acceptJSON); err != nil {
		return Document{}, fmt.Errorf("%s: %w", path, err)
	}
	if document.Hash == "" {
		return ownHash(path, document.Body, have)
	}
	return document, nil
}
