import t from 'tap';
import { checkEngine } from '../../support/engine/property.ts';
import { openSql, type Sql } from '../../support/transitions.ts';

// That what test/sql/engine_property.test.ts checks would find a fault.
const SEED = 20_261_128;

type Fault = Readonly<{
  in: string;
  replace: string | RegExp;
  by: string;
  /** The operations that meet it: more of them, so that it is found soon. */
  often: readonly string[];
  /** No invariant knows it: only where things come to in the end. */
  toTheEnd?: true;
  found: RegExp;
}>;

/** Replaces a part of a function, as it is in the database. */
async function plant(sql: Sql, fault: Fault): Promise<void> {
  const { rows } = await sql.owner.query<{ definition: string }>(
    `select pg_get_functiondef(oid) as definition from pg_proc where pronamespace = 'app'::regnamespace and proname = $1`,
    [fault.in],
  );
  const definition = rows[0]?.definition ?? '';
  const planted = definition.replace(fault.replace, fault.by);
  if (planted === definition) throw new Error(`app.${fault.in} has changed: plant the fault anew`);
  await sql.owner.query(planted);
}

const FAULTS: Readonly<Record<string, Fault>> = {
  'a task is settled without a look at its blockers': {
    in: 'task_settle',
    replace: 'select b.blockers into v_blockers from app.tasks_blockers(p_organization_id, array[p_task_id]) b',
    by: `v_blockers := '[]'`,
    often: ['depend'],
    found: /causes as blockers/,
  },
  'neither fence nor time of a lease is compared': {
    in: 'lease_is_current',
    replace: /return coalesce\([\s\S]*?, false\);/,
    by: `return r.state in ('leased', 'started');`,
    often: ['pull', 'start', 'lapse'],
    found: /lease/,
  },
  'a pull hands out more than the capacity of the organization': {
    in: 'run_requests_pull',
    replace: 'least(v_turn.capacity - v_turn.held, ',
    by: 'least(99, ',
    often: ['many', 'pull'],
    found: /held at a capacity/,
  },
  'a pull hands out more than the capacity of a profile': {
    in: 'run_requests_pull',
    replace: 'least(l.capacity - l.held, ',
    by: 'least(99, ',
    often: ['many', 'pull'],
    found: /held at a capacity/,
  },
  'what is held no more is still counted': {
    in: 'run_requests_count',
    replace: /v_held := v_held - [^;]*;/,
    by: '',
    often: ['pull', 'start', 'complete'],
    found: /counts/,
  },
  'a cancel leaves the tasks below alone': {
    in: 'task_cancel',
    replace: 'c.parent_id = down.id',
    by: 'false',
    often: ['create', 'cancel'],
    found: /nothing open is below what is closed/,
  },
  'no inbox item names a prerequisite that will not complete': {
    in: 'tasks_propagate_end',
    replace: 'perform app.prerequisite_notify(p_organization_id, p_task_ids)',
    by: 'null',
    often: ['depend', 'cancel'],
    toTheEnd: true,
    found: /a dead end that nobody was told of/,
  },
};

for (const [name, fault] of Object.entries(FAULTS)) {
  t.test(`a planted fault is found: ${name}`, async (t) => {
    const sql = await openSql(t);
    await plant(sql, fault);
    const { often, toTheEnd = false } = fault;
    const bounds = { seed: SEED, runs: 40, steps: 50, milliseconds: 60_000, often, toTheEnd };
    const outcome = await checkEngine(sql, bounds);
    t.equal(outcome.failed, true, 'the property fails');
    t.match(outcome.error, fault.found);
  });
}
