// Package resource says which resources the record holds at an instant. Their names are the server's.
//
// A Catalog answers client-go's discovery. So a name means to replay what it means to kubectl. An unknown name is an error, which offers
// the names that are like it.
package resource
