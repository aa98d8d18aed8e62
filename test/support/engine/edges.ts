import { readFile } from 'node:fs/promises';
import path from 'node:path';
import type { Sql } from '../transitions.ts';

const README = path.resolve(import.meta.dirname, '../../../sql/README.md');
const MACHINES = { tasks: 'Task', run_requests: 'Run request', runs: 'Run', actions: 'Action' } as const;
const COLUMNS = { tasks: 'status', run_requests: 'state', runs: 'status', actions: 'status' } as const;
type Table = keyof typeof MACHINES;

/** The edges of a machine as sql/README.md draws it, `from → to`. */
async function drawnEdges(table: Table): Promise<Set<string>> {
  const text = await readFile(README, 'utf8');
  const drawing = text.split(new RegExp(`^${MACHINES[table]} \\(\`${table}\\.`, 'm'))[1]?.split('```')[1] ?? '';
  const edges = [...drawing.matchAll(/^ {2}(\S+) --> (\S+?):? /gm)].map(([, from, to]) => `${from} → ${to}`);
  if (edges.length === 0) throw new Error(`sql/README.md draws no machine of ${table}`);
  return new Set(edges);
}

/** Lets the database note every change of state from now on, inside of transitions too. */
export async function recordEdges(sql: Sql): Promise<void> {
  await sql.owner.query(`
    create table public.edges_seen (machine text, edge text, primary key (machine, edge));
    create function public.note_edge() returns trigger language plpgsql security definer as $$
    declare
      v_from text := case tg_op when 'INSERT' then '[*]' else to_jsonb(old) ->> tg_argv[0] end;
      v_to text := to_jsonb(new) ->> tg_argv[0];
    begin
      if v_from <> v_to then
        insert into public.edges_seen values (tg_table_name, v_from || ' → ' || v_to) on conflict do nothing;
      end if;
      return null;
    end $$;`);
  for (const [table, column] of Object.entries(COLUMNS)) {
    await sql.owner.query(
      `create trigger note_edge after insert or update of ${column} on app.${table}
       for each row execute function public.note_edge('${column}')`,
    );
  }
}

/** The edges that were taken and are not drawn, and how many were taken. */
export async function undrawnEdges(sql: Sql): Promise<{ undrawn: string[]; taken: number }> {
  const { rows } = await sql.owner.query<{ machine: Table; edge: string }>(
    'select machine, edge from public.edges_seen',
  );
  const undrawn: string[] = [];
  for (const table of Object.keys(MACHINES) as Table[]) {
    const drawn = await drawnEdges(table);
    for (const { machine, edge } of rows) if (machine === table && !drawn.has(edge)) undrawn.push(`${table}: ${edge}`);
  }
  return { undrawn: undrawn.sort(), taken: rows.length };
}
