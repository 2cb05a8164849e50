// Package changelog is the command log. It shows the life of an object, or what changed in a namespace or the cluster.
package changelog
