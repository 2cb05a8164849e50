package split

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
)

// An answer is what the real server said to a write: an object, a list of what was deleted, or a Status.
type answer struct {
	Metadata metav1.ObjectMeta    `json:"metadata"`
	Details  metav1.StatusDetails `json:"details"`
	Items    []struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	} `json:"items"`
}

// uid is that of the object, whichever way the answer names it.
func (a *answer) uid() types.UID {
	if a.Metadata.UID != "" {
		return a.Metadata.UID
	}
	return a.Details.UID
}

// readAnswer reads a body, and lets the caller read it again. It returns nothing if the body is no JSON.
func readAnswer(response *http.Response) ([]byte, error) {
	if kind, _, _ := mime.ParseMediaType(response.Header.Get("Content-Type")); kind != "application/json" {
		return nil, nil
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	response.Body.Close()
	response.Body = io.NopCloser(bytes.NewReader(text))
	return text, nil
}

// A realServer is asked about the fate of writes.
type realServer struct {
	root    *url.URL
	admin   *http.Client
	anybody http.RoundTripper // for clients that bring their own credentials
}

func newRealServer(config *rest.Config) (s *realServer, err error) {
	s = &realServer{}
	if s.root, err = url.Parse(config.Host); err != nil {
		return nil, err
	}
	if s.admin, err = rest.HTTPClientFor(config); err != nil {
		return nil, err
	}
	s.anybody, err = rest.TransportFor(rest.AnonymousClientConfig(config))
	return s, err
}

// object gives an object as it is now, nil if it is not there.
func (s *realServer) object(ctx context.Context, path string) (*answer, error) {
	a := &answer{}
	if there, err := s.get(ctx, path, a); err != nil || !there {
		return nil, err
	}
	return a, nil
}

// get reads an object, and reports whether it is there.
func (s *realServer) get(ctx context.Context, path string, into any) (there bool, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.root.JoinPath(path).String(), nil)
	if err != nil {
		return false, err
	}
	r.Header.Set("Accept", "application/json")
	response, err := s.admin.Do(r)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
		return true, json.NewDecoder(response.Body).Decode(into)
	case http.StatusNotFound, http.StatusMethodNotAllowed: // Some can be made only.
		return false, nil
	}
	return false, fmt.Errorf("GET %s: %s", path, response.Status)
}

// expected returns what the record must show after an answer.
func (s *realServer) expected(ctx context.Context, info *request.RequestInfo, a *answer) ([]expectation, error) {
	resource := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	switch {
	case info.Verb == "delete":
		return s.afterDelete(ctx, resource, path(info, info.Namespace, info.Name), a.uid())
	case info.Verb == "deletecollection":
		var all []expectation
		for i := range a.Items {
			deleted := &a.Items[i].Metadata
			more, err := s.afterDelete(ctx, resource, path(info, deleted.Namespace, deleted.Name), deleted.UID)
			if err != nil {
				return all, err
			}
			all = append(all, more...)
		}
		return all, nil
	case a.Metadata.ResourceVersion != "":
		return []expectation{&version{resource, a.Metadata.ResourceVersion}}, nil
	}
	// The answer to a binding or an eviction says nothing of the Pod.
	now, err := s.object(ctx, path(info, info.Namespace, info.Name))
	if err != nil || now == nil || now.Metadata.ResourceVersion == "" {
		return nil, err
	}
	return []expectation{&version{resource, now.Metadata.ResourceVersion}}, nil
}

// afterDelete asks what is left of an object. If it is there and does not end, the delete was a trial.
func (s *realServer) afterDelete(ctx context.Context, resource schema.GroupResource, path string, uid types.UID) ([]expectation, error) {
	now, err := s.object(ctx, path)
	switch {
	case err != nil:
		return nil, err
	case now == nil || now.Metadata.UID != uid:
		return []expectation{&life{string(uid)}}, nil
	case now.Metadata.DeletionTimestamp != nil:
		return []expectation{&version{resource, now.Metadata.ResourceVersion}}, nil
	}
	return nil, nil
}

// path is that of an object.
func path(info *request.RequestInfo, namespace, name string) string {
	root := "/" + info.APIPrefix
	if info.APIGroup != "" {
		root += "/" + info.APIGroup
	}
	root += "/" + info.APIVersion
	if namespace != "" && info.Resource != "namespaces" {
		root += "/namespaces/" + namespace
	}
	return root + "/" + info.Resource + "/" + name
}
