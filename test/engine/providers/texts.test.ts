import t from 'tap';
import { toolRows } from '../../../engine/integrations/record.ts';
import { lemonSqueezy } from '../../../engine/providers/lemon-squeezy/index.ts';
import { safeSchema } from '../../../engine/providers/mcp/schema.ts';
import { shownText, visibleText } from '../../../engine/providers/texts.ts';
import { fails, openClient, openServer } from './support.ts';

const HIDDEN = '\u{e0049}\u{e0067}\u202e\u2066\u200b\u0007';

t.test('what people read of a provider is one line of at most 200 characters', (test) => {
  test.equal(shownText(`Shop${HIDDEN}\n\u2028two`), 'Shoptwo');
  test.equal(shownText('x'.repeat(100_000)).length, 200);
  test.equal(shownText('😀'.repeat(500)), '😀'.repeat(200));
  test.equal(shownText('\ud83d'), '', 'half of a pair');
  test.equal(visibleText(`one\n\ttwo${HIDDEN}`), 'one\n\ttwo');
  test.end();
});

t.test('a tool shows its agents what it shows its owner', (test) => {
  const inputSchema = safeSchema({ type: 'object', properties: { q: { description: `find${HIDDEN}` } } });
  test.same(inputSchema, { type: 'object', properties: { q: { description: 'find' } } });
  const tool = { key: 'find', effect: 'write', risk: 'external', scopes: [], inputSchema: {} } as const;
  const rows = toolRows([
    { ...tool, title: `Find${HIDDEN}`, description: `one\ntwo${HIDDEN}${'x'.repeat(9_000)}` },
    { ...tool, title: HIDDEN, description: '' },
  ]);
  test.match(rows, [{ title: 'Find', description: /^one\ntwox{3993}$/ }, { title: 'find' }]);
  test.end();
});

t.test('names of stores are cut, and an id that is none is the provider’s failure', async (test) => {
  const attributes = { name: `${'n'.repeat(5_000)}`, slug: `s\n${HIDDEN}`, domain: null };
  let id = '1';
  const server = await openServer(test, () => ({ data: [{ id, attributes }], meta: { page: { total: 1 } } }));
  const client = openClient(test, { 'https://api.lemonsqueezy.com': server.origin });
  const access = { credential: { kind: 'api_key', apiKey: 'x'.repeat(40) }, settings: null };
  const { items } = await lemonSqueezy.discover({ client, account: 'i1' }, access);
  test.same(items, [{ id: '1', name: 'n'.repeat(200), slug: 's', domain: null, currency: null }]);
  id = '1'.repeat(101);
  await fails(test, lemonSqueezy.discover({ client, account: 'i1' }, access), 'failed', 'a long id');
});
