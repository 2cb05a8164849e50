package controlplane

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Request is one request as the API server's audit log has it.
type Request struct {
	ID          string
	User        string
	UserAgent   string
	Verb        string // of Kubernetes (get, list, watch, …); for paths that are no resource the HTTP method in lower case
	Group       string
	Version     string
	Resource    string // "" for paths that are no resource, such as /readyz
	Subresource string
	Namespace   string
	Name        string
	URI         string // path and query
	Code        int    // 0 while there is no answer yet
	Received    time.Time
	Ended       bool // a watch that is still open has not
}

// RequestKind is what Count counts by.
type RequestKind struct{ Verb, Group, Resource, UserAgent string }

// Requests returns the requests that the server has received since the control plane's start, over all restarts, oldest
// first, open watches included. A request is there before its answer's first byte is sent. The server must have been
// started with Audit.
func (s *APIServer) Requests() ([]Request, error) {
	file, err := os.Open(s.AuditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s keeps no audit log: start it with Audit", s.name)
	}
	if err != nil {
		return nil, err
	}
	requests, err := readRequests(file)
	return requests, s.wrap("reading the audit log of", errors.Join(err, file.Close()))
}

// Count counts requests by verb, resource and client.
func Count(requests []Request) map[RequestKind]int {
	counts := map[RequestKind]int{}
	for _, r := range requests {
		counts[RequestKind{Verb: r.Verb, Group: r.Group, Resource: r.Resource, UserAgent: r.UserAgent}]++
	}
	return counts
}

// AuditLog is the path of the file that Requests reads. It goes with the control plane's folder.
func (s *APIServer) AuditLog() string { return filepath.Join(s.dir, s.name+".audit.log") }

// auditArguments writes the policy and returns the flags, none if no audit log is wanted.
func (s *APIServer) auditArguments() ([]string, error) {
	if !s.options.Audit {
		return nil, nil
	}
	policy, err := json.Marshal(map[string]any{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": s.auditRules()})
	if err != nil {
		return nil, err
	}
	path := filepath.Join(s.dir, s.name+".audit-policy.json")
	return []string{
		"--audit-policy-file=" + path,
		"--audit-log-path=" + s.AuditLog(),
		// Blocking: a request is in the log before the client can know of its answer.
		"--audit-log-mode=blocking",
		// No rotation: Requests reads one file.
		"--audit-log-maxsize=0",
	}, os.WriteFile(path, policy, 0o600)
}

// auditRules say what is kept of a request: the first that fits decides.
func (s *APIServer) auditRules() []any {
	users := s.options.AuditUsers
	all := map[string]any{"level": "Metadata", "users": users, "omitManagedFields": true}
	if !s.options.AuditWrites {
		return []any{all}
	}
	rules := []any{map[string]any{"level": "None", "verbs": []string{"get", "list", "watch"}}}
	if !s.options.AuditSecrets {
		secret := []any{map[string]any{"resources": []string{"secrets", "serviceaccounts/token"}}, map[string]any{"group": "coordination.k8s.io", "resources": []string{"leases"}}}
		rules = append(rules, map[string]any{"level": "Metadata", "users": users, "resources": secret, "omitStages": []string{"RequestReceived"}})
	}
	return append(rules, map[string]any{"level": "RequestResponse", "users": users, "omitStages": []string{"RequestReceived"}})
}

// auditEvent is what is read of a line of the log: one stage of one request.
type auditEvent struct {
	AuditID    string `json:"auditID"`
	Stage      string `json:"stage"`
	RequestURI string `json:"requestURI"`
	Verb       string `json:"verb"`
	User       struct {
		Username string `json:"username"`
	} `json:"user"`
	UserAgent string `json:"userAgent"`
	ObjectRef struct {
		Resource, Namespace, Name, APIGroup, APIVersion, Subresource string
	} `json:"objectRef"`
	ResponseStatus struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	RequestReceivedTimestamp time.Time `json:"requestReceivedTimestamp"`
}

// readRequests puts the stages of each request together. A last line that is not whole is still being written.
func readRequests(log io.Reader) ([]Request, error) {
	var requests []Request
	index := map[string]int{}
	lines := bufio.NewReader(log)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return requests, nil
		}
		if err != nil {
			return nil, err
		}
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("line %.200q: %w", line, err)
		}
		at, known := index[event.AuditID]
		if !known {
			at = len(requests)
			index[event.AuditID] = at
			requests = append(requests, event.request())
		}
		requests[at].advance(event)
	}
}

func (e auditEvent) request() Request {
	return Request{
		ID: e.AuditID, User: e.User.Username, UserAgent: e.UserAgent, Verb: e.Verb, URI: e.RequestURI,
		Group: e.ObjectRef.APIGroup, Version: e.ObjectRef.APIVersion,
		Resource: e.ObjectRef.Resource, Subresource: e.ObjectRef.Subresource,
		Namespace: e.ObjectRef.Namespace, Name: e.ObjectRef.Name, Received: e.RequestReceivedTimestamp,
	}
}

// advance takes over what a later stage says.
func (r *Request) advance(event auditEvent) {
	if event.ResponseStatus.Code != 0 {
		r.Code = event.ResponseStatus.Code
	}
	if event.Stage == "ResponseComplete" || event.Stage == "Panic" {
		r.Ended = true
	}
}
