import t from 'tap';
import { setUp, startWithCatalog } from '../../../scripts/command/set_up.ts';

const app = await startWithCatalog(t);

t.test('with --json, what people call prints one JSON value and nothing else', async (t) => {
  const { call, slug } = await setUp(t, app);
  // In this order: each row builds on those before it.
  for (const [argv, status, expected] of [
    [['org', 'create', 'Other Lamps', '--slug', `${slug}x`, '--bare'], 0, { slug: `${slug}x` }],
    [['org', 'list'], 0, Array],
    [['task', 'create', 'Count'], 0, { identifier: 'T-1', title: 'Count' }],
    [['task', 'list'], 0, [{ identifier: 'T-1' }]],
    [['task', 'show', 'T-1'], 0, { identifier: 'T-1' }],
    [['task', 'logs', 'T-1'], 0, []],
    [['task', 'cancel', 'T-1'], 0, { status: 'cancelled' }],
    [['task', 'wait', 'T-1'], 2, { status: 'cancelled' }],
    [['task', 'retry', 'T-1'], 0, { identifier: 'T-1' }],
    [['inbox'], 0, []],
    [['actions'], 0, []],
    [['actions', 'list'], 0, []],
    [['context'], 0, Array],
    [['context', 'list'], 0, Array],
  ] as const) {
    const ended = await call(...argv, '--json');
    const name = argv.slice(0, 2).join(' ');
    t.match({ status: ended.status, err: ended.err }, { status, err: '' }, name);
    t.equal(ended.out, `${JSON.stringify(JSON.parse(ended.out), null, 2)}\n`, name);
    t.match(JSON.parse(ended.out), expected, name);
  }
});
