// Package subject is the frame of the commands about one object. It gives them one form. It opens the record for them, and finds the object.
package subject
