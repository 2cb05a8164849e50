// Package selection selects objects as an API server does by labelSelector and fieldSelector. It knows which fields a kind has,
// and finds their values in the object's JSON.
package selection
