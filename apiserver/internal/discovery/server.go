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

// Source reads the record of a cluster. history.Server implements it.
type Source interface {
	// Document returns the API server's document at a path.
	Document(ctx context.Context, at time.Time, path string) (d history.Document, found bool, err error)
	// Discovery lists the resources that the server served, for records without aggregated discovery.
	Discovery(ctx context.Context, at time.Time) ([]history.Resource, error)
}

// Server answers for one instant.
type Server struct {
	source    Source
	at        time.Time
	core      *aggregated // /api
	groups    *aggregated // /apis
	resources map[schema.GroupVersionResource]Resource
	version   []byte // nil if it is not recorded
	openAPI   *openAPI
}

// New reads the server's documents at an instant. OpenAPI documents are read on request. recorded reports whether the
// record has a resource. If two groups serve the same objects (events), it reports true for both.
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

// Handles reports whether this server answers a path, without the prefix of the instant.
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

// route returns the handler of a path, or nil.
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

// notOnRecord returns a 404 with a reason.
func notOnRecord(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound, Message: message, Details: &metav1.StatusDetails{},
	}}
}
