// Package selector selects objects by name and by index. It records which named objects were found.
package selector
