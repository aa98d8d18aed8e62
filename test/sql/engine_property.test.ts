import t from 'tap';
import { recordEdges, undrawnEdges } from '../support/engine/edges.ts';
import { checkEngine } from '../support/engine/property.ts';
import { rounds } from '../support/full.ts';
import { openSql } from '../support/transitions.ts';

// That it finds faults: test/slow/sql/engine_faults.test.ts.
const SEED = 20_261_128;

t.test('whatever is done in whatever order, and two at once, every invariant holds after each step', async (t) => {
  const sql = await openSql(t);
  await recordEdges(sql);
  const runs = rounds({ short: 4, full: 12 });
  const outcome = await checkEngine(sql, { seed: SEED, runs, steps: 50, milliseconds: 20_000, toTheEnd: true });
  t.comment(`${outcome.sequences} sequences`);
  t.notOk(outcome.failed, `${outcome.error} ${outcome.report}`);
  const { undrawn, taken } = await undrawnEdges(sql);
  t.same(undrawn, [], 'every state is reached by an edge that sql/README.md draws');
  t.ok(taken > 10, 'and most edges are taken');
});
