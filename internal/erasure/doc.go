// Package erasure removes one value from the whole record of a cluster: from keyframes, patches and what they call old, from exact texts, from what the API
// server said of itself. Checkpoints that hold it are dropped, and counts of its days. Where it was stands "[erased N]", with the number of the erasure.
//
// No text is patched in place. Each life in which the value occurs is folded from its first row on record, each version is held against its digest (I6),
// and the rows are encoded again from the versions without the value: so every version folds afterwards, keyframes agree with their
// patches, and the new digests are those of what can be read. A record that does not fold is refused, whole: nothing is changed.
//
// All is one transaction, in which no recorder can commit. It ends with a batch that says what was changed (see sink/postgres, Erasing),
// so that verify accepts exactly that. Only who owns the tables may do this: nobody else can change a delta (I8).
package erasure
