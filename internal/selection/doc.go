// Package selection selects objects as an API server does by labelSelector and fieldSelector: which fields a kind has, and how its values
// are found in the object's JSON.
package selection
