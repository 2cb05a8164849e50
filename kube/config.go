package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// ConfigOptions select the cluster. With the zero value, LoadConfig chooses the cluster as every client-go program does.
type ConfigOptions struct {
	Kubeconfig string // one file, instead of KUBECONFIG and ~/.kube/config
	Context    string // instead of the current context
}

// Config is a cluster to connect to.
type Config struct {
	REST      *rest.Config
	Namespace string // the context's, else "default"
	Cluster   string // the name of the context's cluster, or the constant InCluster
	Context   string // the context's name, empty if the program runs in the cluster
}

// InCluster reports whether the program runs in the cluster, as a Pod.
func (c *Config) InCluster() bool { return c.Context == "" }

// InCluster is the display name of the cluster if the program runs inside it.
const InCluster = "in-cluster"

// LoadConfig finds the cluster as every client-go program does. It uses the given file, else the merged files of
// KUBECONFIG, else ~/.kube/config, else the service account of its Pod. Its errors name the files that it looked for.
func LoadConfig(options ConfigOptions) (*Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = options.Kubeconfig
	// LoadConfig's own error lists the missing files.
	rules.WarnIfAllMissing = false
	files, err := rules.Load()
	if err != nil {
		return nil, loadError(options, err)
	}
	context, err := pickContext(files, options, rules)
	if err != nil {
		return nil, err
	}
	if context == "" && len(files.Clusters) == 0 {
		return inCluster(rules)
	}
	if name := files.Contexts[context].Cluster; files.Clusters[name] == nil {
		return nil, fmt.Errorf("context %q names the cluster %q, which is not in %s; there are: %s",
			context, name, places(rules), strings.Join(slices.Sorted(maps.Keys(files.Clusters)), ", "))
	}
	overrides := &clientcmd.ConfigOverrides{CurrentContext: context}
	loaded := clientcmd.NewNonInteractiveClientConfig(*files, context, overrides, rules)
	config := &Config{Context: context, Cluster: files.Contexts[context].Cluster}
	if config.REST, err = loaded.ClientConfig(); err != nil {
		return nil, fmt.Errorf("context %q of %s: %w", context, places(rules), err)
	}
	if config.Namespace, _, err = loaded.Namespace(); err != nil {
		return nil, fmt.Errorf("context %q of %s: namespace: %w", context, places(rules), err)
	}
	return config, nil
}

func loadError(options ConfigOptions, err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("kubeconfig %s does not exist (given by --kubeconfig)", options.Kubeconfig)
	}
	return fmt.Errorf("kubeconfig cannot be read: %w", err)
}

// pickContext returns the name of the context to use. It returns "" if the files have neither contexts nor clusters, and no
// --context was given.
func pickContext(files *clientcmdapi.Config, options ConfigOptions, rules *clientcmd.ClientConfigLoadingRules) (string, error) {
	name, source := options.Context, "given by --context"
	if name == "" {
		name, source = files.CurrentContext, "named as current-context"
	}
	if _, ok := files.Contexts[name]; ok {
		return name, nil
	}
	switch known := slices.Sorted(maps.Keys(files.Contexts)); {
	case name == "" && len(files.Contexts) == 0 && len(files.Clusters) == 0:
		return "", nil
	case len(known) == 0:
		return "", fmt.Errorf("context %q, %s, does not exist: there are no contexts in %s", name, source, places(rules))
	case name == "":
		return "", fmt.Errorf("no --context was given, and %s names no current-context; there are: %s", places(rules), strings.Join(known, ", "))
	default:
		return "", fmt.Errorf("context %q, %s, does not exist in %s; there are: %s", name, source, places(rules), strings.Join(known, ", "))
	}
}

// inCluster uses the Pod's service account.
func inCluster(rules *clientcmd.ClientConfigLoadingRules) (*Config, error) {
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster: looked for a kubeconfig in %s, then for a service account of a pod (%w); give --kubeconfig or set KUBECONFIG", places(rules), err)
	}
	return &Config{REST: config, Namespace: podNamespace(), Cluster: InCluster}, nil
}

// podNamespace finds the Pod's own namespace in the same places as client-go.
func podNamespace() string {
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	const file = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	if text, err := os.ReadFile(file); err == nil && len(strings.TrimSpace(string(text))) > 0 {
		return strings.TrimSpace(string(text))
	}
	return "default"
}

// places lists the files that LoadConfig looked for, and marks the missing ones.
func places(rules *clientcmd.ClientConfigLoadingRules) string {
	files := rules.Precedence
	if rules.ExplicitPath != "" {
		files = []string{rules.ExplicitPath}
	}
	var names []string
	for _, file := range files {
		if file == "" {
			continue
		}
		if _, err := os.Stat(file); err != nil {
			file += " (missing)"
		}
		names = append(names, filepath.Clean(file))
	}
	return strings.Join(names, ", ")
}
