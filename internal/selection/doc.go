// Package selection selects objects like an API server, by labelSelector and fieldSelector. It knows the selectable fields
// of a kind, and finds their values in the object's JSON.
package selection
