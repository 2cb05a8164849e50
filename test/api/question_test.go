package api_test

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// A question is a GET.
type question struct {
	root   revision // the instant that the API of the past is asked about; the real server takes no notice
	path   string
	query  url.Values
	accept string
	header map[string]string
}

// The forms that an answer can have.
const (
	asJSON            = "application/json"
	asMetadata        = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
	asMetadataList    = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json"
	asTable           = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	asDiscovery       = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
	wantsTableOrNone  = "application/json;as=Table;v=v1;g=meta.k8s.io"
	wantsTableUnknown = "application/json;as=Table;v=v7;g=meta.k8s.io"
)

// A pair is one question to both servers. The real one may have to be asked in another way: it gives one object of the past only as a list.
type pair struct {
	kind         kind
	theirs, ours question
	one          string   // "" or the name of the only object that their list may have
	at           revision // what ages are relative to
}

func (p pair) String() string {
	return fmt.Sprintf("%s?%s at %s (real server: %s?%s), Accept: %s", p.ours.path, p.ours.query.Encode(), p.ours.root, p.theirs.path, p.theirs.query.Encode(), p.ours.accept)
}

// same asks both the same, at an instant of the API of the past.
func same(k kind, at revision, path, accept string, query ...string) pair {
	q := question{root: at, path: path, accept: accept, query: values(query...)}
	return pair{kind: k, theirs: q, ours: q, at: at}
}

// values makes a query of "name=value".
func values(parameters ...string) url.Values {
	query := url.Values{}
	for _, parameter := range parameters {
		if name, value, ok := strings.Cut(parameter, "="); ok {
			query.Add(name, value)
		}
	}
	return query
}

// exactly makes a list one of a revision, as the real server has it.
func (q question) exactly(r revision) question {
	return q.with("resourceVersion="+strconv.FormatInt(r.rv, 10), "resourceVersionMatch=Exact")
}

func (q question) with(parameters ...string) question {
	query := url.Values{}
	for name, all := range q.query {
		query[name] = all
	}
	for name, all := range values(parameters...) {
		query[name] = all
	}
	q.query = query
	return q
}

func (q question) without(names ...string) question {
	q = q.with()
	for _, name := range names {
		q.query.Del(name)
	}
	return q
}

var labelSelectors = []string{
	"app=web", "tier=front", "tier!=front", "app in (web,batch),tier", "!tier", "app notin (web)", "kubernetes.io/metadata.name", "tier==back,app",
}

// anyFields can be selected by in each resource.
var anyFields = []string{"metadata.name=settings", "metadata.name!=web-1", "metadata.name=web-1,metadata.name!=web-1", "spec.nowhere=x", "metadata.name==web"}

var namespacedFields = []string{"metadata.namespace=shop", "metadata.namespace!=shop,metadata.name!=settings"}

// fields can be selected by in some resources only. "uid" and the like of another are refused there.
var fields = map[string][]string{
	"pods": {
		"spec.nodeName=worker-1", "spec.nodeName!=worker-1,status.phase!=Succeeded", "spec.host=worker-1", "status.phase=Running", "status.phase!=Running", "spec.hostNetwork=true",
		"spec.hostNetwork=false", "spec.schedulerName=other", "spec.serviceAccountName=", "spec.restartPolicy=Never", "status.podIP=10.1.0.9", "status.podIPs=10.1.0.9", "status.podIPs!=10.1.0.9",
		"status.podIPs=", "status.nominatedNodeName=",
	},
	"nodes": {"spec.unschedulable=true", "spec.unschedulable=false", "spec.unschedulable!=true"},
	"events": {
		"involvedObject.kind=Pod,involvedObject.name=web-2", "involvedObject.uid=", "involvedObject.apiVersion=v1", "involvedObject.fieldPath=spec.containers{web}", "involvedObject.resourceVersion=",
		"reason=BackOff", "reportingComponent=default-scheduler", "source=kubelet", "source=default-scheduler", "type!=Normal", "regarding.name=web-2", "regarding.kind=Pod,reason!=BackOff",
		"reportingController=default-scheduler", "regarding.namespace=shop",
	},
	"secrets":                    {"type=Opaque", "type!=Opaque"},
	"services":                   {"spec.clusterIP=None", "spec.type=LoadBalancer", "spec.type!=ClusterIP"},
	"namespaces":                 {"status.phase=Active", "status.phase=Terminating", "name=shop"},
	"replicationcontrollers":     {"status.replicas=1", "status.replicas=0"},
	"replicasets":                {"status.replicas=3", "status.replicas!=3"},
	"jobs":                       {"status.successful=1", "status.successful!=1"},
	"certificatesigningrequests": {"spec.signerName=example.com/signer", "spec.signerName!=example.com/signer"},
	"widgets":                    {"spec.size=large", "spec.size!=large", "spec.size=", "spec.replicas=3"},
	"gadgets":                    {"spec.size=large", "spec.weight=3", "spec.weight!=3"},
}

// fieldSelectors are those to try with a kind; some are refused.
func (k kind) fieldSelectors() []string {
	all := append([]string(nil), anyFields...)
	if k.namespaced {
		all = append(all, namespacedFields...)
	}
	return append(all, fields[k.Resource]...)
}
