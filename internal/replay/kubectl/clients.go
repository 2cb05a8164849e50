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

// Clients gives kubectl's code clients whose requests the record answers.
type Clients struct {
	Namespace string // "" for all
	Catalog   *resource.Catalog
	Transport http.RoundTripper
	Warn      func(text string) // nil: Warning headers are not shown
}

var _ genericclioptions.RESTClientGetter = (*Clients)(nil)

// ToRESTConfig returns a configuration whose requests go to Transport.
func (c *Clients) ToRESTConfig() (*rest.Config, error) {
	// QPS -1 means no limit: there is no server to protect.
	return &rest.Config{Host: resource.ApiHost, Transport: c.Transport, QPS: -1, WarningHandler: warner(c.Warn)}, nil
}

// ToDiscoveryClient returns the discovery at the instant.
func (c *Clients) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	return c.Catalog.Discovery, nil
}

// ToRESTMapper returns the mapper of the resources at the instant.
func (c *Clients) ToRESTMapper() (meta.RESTMapper, error) { return c.Catalog.Mapper, nil }

// ToRawKubeConfigLoader returns the namespace, and reads no file. If Namespace is "", kubectl still needs a namespace here,
// and does not use it.
func (c *Clients) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	context := clientcmdapi.Context{Namespace: cmp.Or(c.Namespace, metav1.NamespaceDefault)}
	return clientcmd.NewDefaultClientConfig(*clientcmdapi.NewConfig(), &clientcmd.ConfigOverrides{Context: context})
}

type warner func(text string)

// HandleWarningHeader handles the warnings that are for persons.
func (w warner) HandleWarningHeader(code int, _, text string) {
	const forPersons = 299
	if w != nil && code == forPersons {
		w(text)
	}
}
