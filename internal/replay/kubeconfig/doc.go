// Package kubeconfig is the command kubeconfig. It writes a kubeconfig for a running server, at an instant.
package kubeconfig
