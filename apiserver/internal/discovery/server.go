package discovery

import (
	"context"
	"net/http"
	"strings"
	"time"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kuberewind/kuberewind/apiserver/internal/wire"
	"github.com/kuberewind/kuberewind/history"
)

// Source is where the record of a cluster is read. history.Server is one.
type Source interface {
	// Document gives what the API server said at a path.
	Document(ctx context.Context, at time.Time, path string) (d history.Document, found bool, err error)
	// Discovery lists the resources that were served, for records without aggregated discovery.
	Discovery(ctx context.Context, at time.Time) ([]history.Resource, error)
}

// Server answers for one instant.
type Server struct {
	source    Source
	at        time.Time
	core      *aggregated // /api
	groups    *aggregated // /apis
	resources map[schema.GroupVersionResource]Resource
	version   []byte // nil if it is not on record
	openAPI   *openAPI
}

// New reads what the server said at an instant; OpenAPI documents are read when they are asked for. recorded says which resources the
// record has, of a pair of groups that serve the same objects (events) both.
func New(ctx context.Context, source Source, at time.Time, recorded func(schema.GroupResource) bool) (*Server, error) {
	s := &Server{source: source, at: at, resources: map[schema.GroupVersionResource]Resource{}}
	core, groups, err := readDiscovery(ctx, source, at)
	if err != nil {
		return nil, err
	}
	for _, list := range []*apidiscovery.APIGroupDiscoveryList{core, groups} {
		trim(list, recorded)
		index(list, recorded, s.resources)
	}
	if s.core, err = newAggregated(core); err != nil {
		return nil, err
	}
	if s.groups, err = newAggregated(groups); err != nil {
		return nil, err
	}
	version, _, err := source.Document(ctx, at, "/version")
	if err != nil {
		return nil, err
	}
	s.version = version.Content
	s.openAPI, err = newOpenAPI(ctx, source, at)
	return s, err
}

// Handles says whether a path, without the prefix of the instant, is answered here.
func (s *Server) Handles(path string) bool { return s.route(path) != nil }

// ServeHTTP implements http.Handler, for paths without the prefix of the instant.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := s.route(r.URL.Path)
	switch {
	case answer == nil:
		wire.Unserved(w)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		wire.Error(w, apierrors.NewGenericServerResponse(http.StatusMethodNotAllowed, r.Method, schema.GroupResource{}, "", "", 0, false))
	default:
		answer(w, r)
	}
}

// route is what answers at a path, or nil.
func (s *Server) route(path string) http.HandlerFunc {
	if answer := s.openAPI.route(path); answer != nil {
		return answer
	}
	if answer := health(path); answer != nil {
		return answer
	}
	parts := strings.Split(strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/"), "/")
	switch root := parts[0]; {
	case root == "version" && len(parts) == 1:
		return s.serveVersion
	case root == "api" && len(parts) == 1:
		return s.core.orElse(s.serveLegacyVersions)
	case root == "api" && len(parts) == 2:
		return s.core.serveVersion("", parts[1])
	case root == "apis" && len(parts) == 1:
		return s.groups.orElse(s.groups.serveGroups)
	case root == "apis" && len(parts) == 2:
		return s.groups.serveGroup(parts[1])
	case root == "apis" && len(parts) == 3:
		return s.groups.serveVersion(parts[1], parts[2])
	}
	return nil
}

func (s *Server) serveVersion(w http.ResponseWriter, _ *http.Request) {
	if s.version == nil {
		wire.Error(w, notOnRecord("the version of the API server is not on record"))
		return
	}
	wire.Body(w, http.StatusOK, s.version)
}

// notOnRecord is a 404 that says why.
func notOnRecord(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: message, Details: &metav1.StatusDetails{},
	}}
}
