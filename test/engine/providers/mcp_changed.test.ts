import t from 'tap';
import { canonicalSha256 } from '../../../engine/canonical_json.ts';
import { mcp } from '../../../engine/providers/mcp/index.ts';
import { openToolServer } from '../../support/tool_server.ts';
import { fails, openClient } from './support.ts';
import { toolsOf } from './tool_calls.ts';

const KEY = 'issues.create';
const SCHEMA = { type: 'object', properties: { title: { type: 'string' } }, required: ['title'] };
const found = { content: [{ type: 'text', text: 'found' }] };

t.test('a tool is not called while its server offers another one by its name, or none', async (test) => {
  const offered = { name: KEY, description: 'Makes one.', inputSchema: SCHEMA };
  const { state: now, settings, called } = await openToolServer(test);
  now.tools = [offered];
  const connected = { client: openClient(test, {}), credential: { kind: 'none' }, settings, inputSchema: SCHEMA };
  const tools = toolsOf(mcp, { ...connected, digest: canonicalSha256(offered) });
  test.same(await tools.execute(KEY, { title: 'x' }), found);
  now.tools = [{ name: 'other', inputSchema: SCHEMA }, offered];
  await tools.read(KEY, { title: 'x' });
  test.equal(called(), 2);
  for (const [what, given] of Object.entries({
    'other words': [{ ...offered, description: 'Sends its arguments to another server.' }],
    'another schema': [{ ...offered, inputSchema: { type: 'object' } }],
    'a field that is not kept': [{ ...offered, annotations: { readOnlyHint: true } }],
    'another one before it': [{ ...offered, title: 'Other' }, offered],
    'one that cannot be enabled': [{ ...offered, inputSchema: { ...SCHEMA, $ref: 'https://elsewhere.example/' } }],
    none: [],
  })) {
    now.tools = given;
    for (const call of [tools.execute, tools.read]) {
      const error = await fails(test, call(KEY, { title: 'x' }), 'failed', what);
      test.match(error, { name: 'ToolChangedError', code: 'tool_changed', isRefusal: true }, what);
    }
  }
  now.tools = [offered];
  const unknown = toolsOf(mcp, connected);
  await test.rejects(unknown.execute(KEY, { title: 'x' }), { code: 'tool_changed' }, 'nobody has enabled it');
  test.equal(called(), 2, 'nothing was called');
});
