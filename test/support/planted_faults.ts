import type { Sql } from './transitions.ts';

type Fault = Readonly<{ in: string; replace: string | RegExp; by: string }>;

/** Replaces a part of a function, as it is in the database. */
export async function plantFault(sql: Pick<Sql, 'owner'>, fault: Fault): Promise<void> {
  const { rows } = await sql.owner.query<{ definition: string }>(
    `select pg_get_functiondef(oid) as definition from pg_proc where pronamespace = 'app'::regnamespace and proname = $1`,
    [fault.in],
  );
  const definition = rows[0]?.definition ?? '';
  const planted = definition.replace(fault.replace, fault.by);
  if (planted === definition) throw new Error(`app.${fault.in} has changed: plant the fault anew`);
  await sql.owner.query(planted);
}
