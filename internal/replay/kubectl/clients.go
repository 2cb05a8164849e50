package kubectl

import (
	"cmp"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kuberewind/kuberewind/internal/replay/resource"
)

// Clients are what kubectl's code gets its clients from: they ask the record.
type Clients struct {
	Namespace string // "" for all
	Catalog   *resource.Catalog
	Transport http.RoundTripper
	Warn      func(text string) // nil: Warning headers are not shown
}

var _ genericclioptions.RESTClientGetter = (*Clients)(nil)

// ToRESTConfig has the client ask the record.
func (c *Clients) ToRESTConfig() (*rest.Config, error) {
	// QPS -1: nobody needs to be spared.
	return &rest.Config{Host: resource.ApiHost, Transport: c.Transport, QPS: -1, WarningHandler: warner(c.Warn)}, nil
}

// ToDiscoveryClient knows what was served at the instant.
func (c *Clients) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return c.Catalog.Discovery, nil
}

// ToRESTMapper knows what was served at the instant.
func (c *Clients) ToRESTMapper() (meta.RESTMapper, error) { return c.Catalog.Mapper, nil }

// ToRawKubeConfigLoader knows the namespace, and reads no file. If all are asked for, kubectl asks for one and does not use it.
func (c *Clients) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	context := clientcmdapi.Context{Namespace: cmp.Or(c.Namespace, metav1.NamespaceDefault)}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{Context: context})
}

type warner func(text string)

// HandleWarningHeader takes the warnings that are for persons.
func (w warner) HandleWarningHeader(code int, _, text string) {
	const forPersons = 299
	if w != nil && code == forPersons {
		w(text)
	}
}
