// Package compare compares two instants of the cluster, object by object. It prints nothing.
package compare
