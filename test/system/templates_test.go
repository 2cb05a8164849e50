package system_test

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var kinds = map[schema.GroupVersionResource]string{
	configMaps: "ConfigMap", secrets: "Secret", services: "Service", pods: "Pod", nodes: "Node",
	serviceAccounts: "ServiceAccount", events: "Event", deployments: "Deployment", replicaSets: "ReplicaSet", jobs: "Job",
	leases: "Lease", roles: "Role", ingresses: "Ingress", widgets: "Widget",
}

func apiVersion(gvr schema.GroupVersionResource) string { return gvr.GroupVersion().String() }

func object(apiVersion, kind, namespace, name string, body map[string]any) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	for key, value := range body {
		o.Object[key] = value
	}
	o.SetAPIVersion(apiVersion)
	o.SetKind(kind)
	o.SetName(name)
	if namespace != "" {
		o.SetNamespace(namespace)
	}
	return o
}

// template gives the smallest object of a kind that the server accepts and that says something.
func template(gvr schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	if gvr == nodes {
		namespace = ""
	}
	return object(apiVersion(gvr), kinds[gvr], namespace, name, body(gvr, namespace, name))
}

func body(gvr schema.GroupVersionResource, namespace, name string) map[string]any {
	labels := map[string]any{"app": name}
	podSpec := map[string]any{
		"restartPolicy": "Never",
		"containers": []any{
			map[string]any{"name": "main", "image": "registry.example/app:1.0", "env": []any{map[string]any{"name": "A", "value": "1"}}},
			map[string]any{"name": "side", "image": "registry.example/side:2.3"},
		},
	}
	podTemplate := map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{
		"containers": []any{map[string]any{"name": "main", "image": "registry.example/app:1.0"}},
	}}
	switch gvr {
	case configMaps:
		return map[string]any{"data": map[string]any{"key-0": "v", "config.yaml": "a: 1\nb: \"two\"\n"}}
	case secrets:
		return map[string]any{"stringData": map[string]any{"password": secretValue, "user": name}}
	case services:
		return map[string]any{"spec": map[string]any{"clusterIP": "None", "selector": labels,
			"ports": []any{map[string]any{"name": "http", "port": int64(80)}}}}
	case pods:
		return map[string]any{"spec": podSpec}
	case deployments, replicaSets:
		return map[string]any{"spec": map[string]any{"replicas": int64(2), "selector": map[string]any{"matchLabels": labels}, "template": podTemplate}}
	case jobs:
		return map[string]any{"spec": map[string]any{"template": map[string]any{"spec": podSpec}}}
	case leases:
		return map[string]any{"spec": map[string]any{"holderIdentity": name, "leaseDurationSeconds": int64(15)}}
	case roles:
		return map[string]any{"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}}
	case ingresses:
		return map[string]any{"spec": map[string]any{"defaultBackend": map[string]any{"service": map[string]any{"name": name, "port": map[string]any{"number": int64(80)}}}}}
	case events:
		return map[string]any{"reason": "Tested", "message": "an event that expires", "type": "Normal",
			"involvedObject": map[string]any{"kind": "Pod", "namespace": namespace, "name": name}}
	case widgets:
		return map[string]any{"spec": map[string]any{"big": int64(9007199254740993), "empty": map[string]any{}, "list": []any{"a", "b"}}}
	}
	return nil
}

// secretValue must be found nowhere but in etcd.
const secretValue = "correct-horse-battery-staple"

func widgetCRD() *unstructured.Unstructured {
	return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "", "widgets.example.kuberewind.dev", map[string]any{
		"spec": map[string]any{
			"group": "example.kuberewind.dev",
			"scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}},
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	})
}
