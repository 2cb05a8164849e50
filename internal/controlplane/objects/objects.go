package objects

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Shop has one object or more of each kind that kubectl prints in its own way. "@-10m" and the like stand for times before now.
//
//go:embed shop.yaml
var Shop []byte

// Manager is the field manager of what a Maker writes.
const Manager = "tester"

const (
	patience = 5 * time.Minute // many times what anything takes on a busy machine of two cores
	interval = 50 * time.Millisecond
)

// A Maker makes objects for one test.
type Maker struct {
	t      testing.TB
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

// New returns a Maker for the API server that the configuration leads to.
func New(t testing.TB, config *rest.Config) *Maker {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	discovered, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return &Maker{t: t, client: client, mapper: restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discovered))}
}

// Apply creates the objects of a YAML text, in its order.
func (m *Maker) Apply(text []byte) []*unstructured.Unstructured {
	m.t.Helper()
	var made []*unstructured.Unstructured
	for _, doc := range strings.Split(string(dated(text, time.Now())), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(doc), &object.Object); err != nil {
			m.t.Fatalf("%v in:\n%s", err, doc)
		}
		made = append(made, m.Create(object))
	}
	return made
}

// dated replaces what stands for times.
func dated(text []byte, now time.Time) []byte {
	for placeholder, ago := range map[string]time.Duration{"@-1h": time.Hour, "@-10m": 10 * time.Minute, "@-3m": 3 * time.Minute, "@-1m": time.Minute} {
		text = bytes.ReplaceAll(text, []byte(placeholder), []byte(now.Add(-ago).UTC().Format("2006-01-02T15:04:05.000000Z07:00")))
	}
	return text
}

// Create creates an object, and gives one that has a status that status.
func (m *Maker) Create(object *unstructured.Unstructured) *unstructured.Unstructured {
	m.t.Helper()
	client := m.Resource(object.GroupVersionKind(), object.GetNamespace())
	status, hasStatus := object.Object["status"]
	created, err := client.Create(m.t.Context(), object, metav1.CreateOptions{FieldManager: Manager})
	if err == nil && hasStatus {
		created.Object["status"] = status
		created, err = client.UpdateStatus(m.t.Context(), created, metav1.UpdateOptions{FieldManager: Manager})
	}
	if err != nil {
		m.t.Fatalf("create %s %s: %v", object.GetKind(), object.GetName(), err)
	}
	if object.GetKind() == "CustomResourceDefinition" {
		return m.established(client, created)
	}
	return created
}

// established returns the definition once the API server serves its resource.
func (m *Maker) established(client dynamic.ResourceInterface, definition *unstructured.Unstructured) *unstructured.Unstructured {
	m.t.Helper()
	m.await("the definition "+definition.GetName()+" is established", func(ctx context.Context) (done bool, err error) {
		got, err := client.Get(ctx, definition.GetName(), metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		definition = got
		return isEstablished(got)
	})
	m.mapper.Reset()
	return definition
}

func isEstablished(object *unstructured.Unstructured) (bool, error) {
	var definition apiextensionsv1.CustomResourceDefinition
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &definition); err != nil {
		return false, err
	}
	for _, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			return true, nil
		}
	}
	return false, nil
}

// Resource returns the client of a kind's resource, once discovery has it. namespace is "" for one that has no namespaces.
func (m *Maker) Resource(kind schema.GroupVersionKind, namespace string) dynamic.ResourceInterface {
	m.t.Helper()
	var mapping *meta.RESTMapping
	m.await(kind.String()+" is served", func(context.Context) (done bool, err error) {
		if mapping, err = m.mapper.RESTMapping(kind.GroupKind(), kind.Version); err != nil {
			m.mapper.Reset()
		}
		return err == nil, nil
	})
	if namespace == "" {
		return m.client.Resource(mapping.Resource)
	}
	return m.client.Resource(mapping.Resource).Namespace(namespace)
}

func (m *Maker) await(what string, condition wait.ConditionWithContextFunc) {
	m.t.Helper()
	ctx, cancel := context.WithTimeoutCause(m.t.Context(), patience, errors.New("it took too long"))
	defer cancel()
	if err := wait.PollUntilContextCancel(ctx, interval, true, condition); err != nil {
		m.t.Fatalf("%s: %v (%v)", what, err, context.Cause(ctx))
	}
}
