package migrations

import (
	"context"
	"fmt"
)

// ownership says which role owns the schema. It comes from the catalogs only, because code in a stranger's schema runs
// as its caller.
type ownership struct {
	user     string
	super    bool
	owner    string // "" if there is no schema
	stranger string // an object in the schema that another role than its owner has made; "" if there is none
}

func (p *probe) ownership(ctx context.Context) (o ownership, err error) {
	err = p.conn.QueryRow(ctx, `
		SELECT r.rolname::text, r.rolsuper, coalesce(pg_catalog.pg_get_userbyid(n.nspowner)::text, ''), coalesce((
			SELECT held.name || ' of ' || pg_catalog.pg_get_userbyid(held.owner)
			FROM (
				SELECT c.relname AS name, c.relowner AS owner FROM pg_catalog.pg_class c WHERE c.relnamespace = n.oid
				UNION ALL SELECT f.proname, f.proowner FROM pg_catalog.pg_proc f WHERE f.pronamespace = n.oid
			) held
			WHERE held.owner <> n.nspowner ORDER BY held.name LIMIT 1), '')
		FROM pg_catalog.pg_roles r LEFT JOIN pg_catalog.pg_namespace n ON n.nspname = 'kuberewind'
		WHERE r.rolname = current_user`).Scan(&o.user, &o.super, &o.owner, &o.stranger)
	if err != nil {
		return o, fmt.Errorf("read the owner of the schema: %w", err)
	}
	return o, nil
}

// mayRead returns an error for a superuser that would run a stranger's schema_version(). A recorder that is no
// superuser need not own the schema.
func (o ownership) mayRead() error {
	if o.super {
		return o.owned()
	}
	return nil
}

// mayMigrate returns an error for a schema that another user could have prepared: migrations would run its code.
func (o ownership) mayMigrate() error {
	if err := o.owned(); err != nil {
		return err
	}
	if o.stranger != "" {
		return fmt.Errorf("%w: it holds %s, and its owner is %s; drop that first, or give it to %[3]s", ErrNotOwner, o.stranger, o.owner)
	}
	return nil
}

func (o ownership) owned() error {
	if o.owner == "" || o.owner == o.user {
		return nil
	}
	return fmt.Errorf("%w: it belongs to %s, and this login is %s; migrate as %[2]s. Drop the schema %[4]s only if you are sure that it holds no record",
		ErrNotOwner, o.owner, o.user, Schema)
}
