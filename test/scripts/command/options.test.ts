import t from 'tap';
import { readCommand } from '../../../scripts/command/options.ts';

t.test('call takes its arguments after --json, wherever its options stand', async (test) => {
  const given = '{"limit": 5}';
  for (const argv of [
    ['call', 'shop', 'orders.list', '--json', given],
    ['call', 'shop', 'orders.list', `--json=${given}`],
    ['--org', 'acme', 'call', 'shop', 'orders.list', '--json', given],
    ['--url', 'http://127.0.0.1:3001', '--org=acme', 'call', '--json', given, 'shop', 'orders.list'],
  ]) {
    const called = readCommand(argv);
    test.match(called, { name: 'call', args: ['shop', 'orders.list'], values: { json: true, arguments: given } });
    test.equal(called?.args.length, 2);
  }
});

t.test('of another command, what follows --json is a word like others', async (test) => {
  test.match(readCommand(['--org', 'call', 'ask', '--json', '{"a": 1}']), {
    name: 'ask',
    args: ['{"a": 1}'],
    values: { json: true, arguments: undefined },
  });
});
