package postgres

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kuberewind/kuberewind/delta"
)

func TestUnfollowedFindsYoungLivingDefinitionsWithoutAStream(t *testing.T) {
	r := record(t, newDatabase(t))
	definitions := r.stream(StreamSpec{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Kind: "CustomResourceDefinition"})
	r.commit(listed(definitions, delta.SourceList, made(t, "", "listed.example.com", "u1", "11", `1`)), replacedBy(definitions, "first_list", "11"))
	r.commit(watched(definitions, delta.Added, made(t, "", "old.example.com", "u2", "12", `1`)))
	r.now = r.now.Add(25 * time.Hour)
	deleted := made(t, "", "deleted.example.com", "u3", "13", `1`)
	r.commit(watched(definitions, delta.Added, deleted), watched(definitions, delta.Deleted, made(t, "", "deleted.example.com", "u3", "14", `1`)))
	for rv, name := range map[string]string{"15": "followed.example.com", "16": "opened.example.com", "17": "found.example.com", "19": "again.example.com"} {
		r.commit(watched(definitions, delta.Added, made(t, "", name, "u"+rv, rv, `1`)))
	}
	r.commit(watched(definitions, delta.Updated, made(t, "", "found.example.com", "u17", "18", `2`)))
	followed := r.stream(StreamSpec{Group: "example.com", Resource: "followed", Kind: "Followed"})
	r.commit(replacedBy(followed, "first_list", "18"))
	again := r.stream(StreamSpec{Group: "example.com", Resource: "again", Kind: "Again"})
	r.commit(replacedBy(again, "first_list", "9"))                                 // under an earlier definition
	r.stream(StreamSpec{Group: "example.com", Resource: "opened", Kind: "Opened"}) // but with no list on record
	r.reopen()
	found, err := r.sink.Prior().UnfollowedDefinitions(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []Definition{{"opened.example.com", "u16", "16"}, {"found.example.com", "u17", "17"}, {"again.example.com", "u19", "19"}}, found)
}

func TestTheVersionOfADefinitionsEndIsKnownWhileItIsOnRecord(t *testing.T) {
	r := record(t, newDatabase(t))
	spec := StreamSpec{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Kind: "CustomResourceDefinition"}
	definitions := r.stream(spec)
	r.commit(replacedBy(definitions, "first_list", "10"))
	r.now = r.now.Add(time.Second)
	things := r.stream(StreamSpec{Group: "example.com", Resource: "things", Kind: "Thing"})
	r.commit(replacedBy(things, "first_list", "11"))
	ended := func() string {
		r.reopen()
		streams, err := r.sink.Prior().Streams(t.Context())
		require.NoError(t, err)
		require.Len(t, streams, 2)
		definitions = r.stream(spec)
		before, err := r.sink.Prior().DefinedBefore(t.Context(), "example.com", "things", "u3")
		require.NoError(t, err)
		for _, life := range before.Lives {
			require.Equal(t, streams[1].DefinitionEnd, life.End)
		}
		return streams[1].DefinitionEnd
	}
	r.commit(watched(definitions, delta.Added, made(t, "", "things.example.com", "u1", "12", `1`)))
	require.Empty(t, ended())
	r.commit(watched(definitions, delta.Deleted, made(t, "", "things.example.com", "u1", "13", `1`)))
	require.Equal(t, "13", ended())
	r.now = r.now.Add(50 * time.Hour)
	r.commit(watched(definitions, delta.Added, made(t, "", "others.example.com", "u2", "14", `1`)))
	require.Equal(t, "13", ended())
	r.db.Exec(t, `DELETE FROM kuberewind.days WHERE first_seq <= 2`)
	require.Equal(t, Pruned, ended())
}

func TestEarlierDefinitionsAreKnownWhileTheyAreOnRecord(t *testing.T) {
	r := record(t, newDatabase(t))
	definitions := r.stream(StreamSpec{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions", Kind: "CustomResourceDefinition"})
	r.commit(replacedBy(definitions, "first_list", "10"))
	r.now = r.now.Add(time.Second)
	r.commit(replacedBy(r.stream(StreamSpec{Group: "example.com", Resource: "things", Kind: "Thing"}), "first_list", "11"))
	before := func(uid types.UID) DefinedLives {
		d, err := r.sink.Prior().DefinedBefore(t.Context(), "example.com", "things", uid)
		require.NoError(t, err)
		return *d
	}
	require.Empty(t, before("u1").Lives)
	r.commit(watched(definitions, delta.Added, made(t, "", "things.example.com", "u1", "12", `1`)))
	require.Empty(t, before("u1").Lives)
	require.Equal(t, DefinedLives{Lives: []DefinedLife{{"12", ""}}, UpTo: "12"}, before("u2"), "it lives")
	r.commit(watched(definitions, delta.Updated, made(t, "", "things.example.com", "u1", "13", `2`)), watched(definitions, delta.Deleted, made(t, "", "things.example.com", "u1", "14", `2`)))
	one := DefinedLife{"12", "14"}
	require.Equal(t, DefinedLives{Lives: []DefinedLife{one}, UpTo: "14"}, before("u2"))
	r.commit(bookmark(definitions, "20"))
	require.Equal(t, DefinedLives{Lives: []DefinedLife{one}, UpTo: "20"}, before("u2"))
	r.commit(interruptedBy(definitions, "expired", ""), listed(definitions, delta.SourceRelist, made(t, "", "things.example.com", "u2", "25", `1`)))
	require.Equal(t, DefinedLives{Lives: []DefinedLife{{"", ""}, one}, Blind: true}, before("u3"), "a part of a list is on record")
	r.commit(replacedBy(definitions, "expired", "30"))
	require.Equal(t, DefinedLives{Lives: []DefinedLife{{"", ""}, one}, UpTo: "30", Blind: true}, before("u3"), "the gap may hide another definition")
	r.now = r.now.Add(time.Second)
	r.commit(bookmark(r.stream(StreamSpec{Group: "example.com", Resource: "things", Kind: "Thing"}), "28"))
	require.True(t, before("u3").Blind, "the position was recorded later, but is older than the end of the gap")
	r.commit(bookmark(r.stream(StreamSpec{Group: "example.com", Resource: "things", Kind: "Thing"}), "40"))
	require.Equal(t, DefinedLives{Lives: []DefinedLife{{"", ""}, one}, UpTo: "30"}, before("u3"), "the position is newer than the gap")
}
