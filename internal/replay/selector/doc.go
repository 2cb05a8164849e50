// Package selector selects objects by labels and fields. It keeps account of the objects that were asked for by name.
package selector
