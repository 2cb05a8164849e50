// Package erasure removes one value from the whole record of a cluster: from keyframes, patches and their old values, exact
// texts, and recorded discovery. It drops checkpoints that hold the value, and the counts of its days. "[erased N]" takes the
// value's place; N is the number of the erasure.
//
// No text is patched in place. The package folds each life in which the value occurs from its first row on record, and compares
// each version with its digest (I6). Then it encodes the rows again from the versions without the value. So every version folds
// afterwards, keyframes agree with their patches, and the new digests match the readable text. A record that does not fold is
// refused whole: nothing is changed.
//
// An erasure is one transaction, in which no recorder can commit. It ends with a batch that lists the changes (see
// sink/postgres, Erasing), so that verify accepts exactly those. Only the owner of the tables may erase: nobody else can change
// a delta (I8).
package erasure
