import t from 'tap';
import { checkEngine } from '../../support/engine/property.ts';
import { plantFault } from '../../support/planted_faults.ts';
import { openSql } from '../../support/transitions.ts';

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
    await plantFault(sql, fault);
    const { often, toTheEnd = false } = fault;
    const bounds = { seed: SEED, runs: 40, steps: 50, milliseconds: 60_000, often, toTheEnd };
    const outcome = await checkEngine(sql, bounds);
    t.equal(outcome.failed, true, 'the property fails');
    t.match(outcome.error, fault.found);
  });
}
