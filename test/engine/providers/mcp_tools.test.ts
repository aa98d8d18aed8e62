import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import type { CallToolResult } from '@modelcontextprotocol/sdk/types.js';
import type * as Tap from 'tap';
import t from 'tap';
import { z } from 'zod';
import { canonicalSha256 } from '../../../engine/canonical_json.ts';
import { toolExecutor } from '../../../engine/gateway/write_tool.ts';
import type { OpenConnection } from '../../../engine/integrations/index.ts';
import { mcp } from '../../../engine/providers/mcp/index.ts';
import { keptData, readResult } from '../../../engine/providers/mcp/result.ts';
import { CursorError } from '../../../engine/providers/tool.ts';
import type { Storage } from '../../../engine/storage/index.ts';
import { type Call, fails, json, openClient, openServer } from './support.ts';
import { failsAsDocumented, toolsOf } from './tool_calls.ts';

const SCHEMA = {
  type: 'object',
  properties: { title: { type: 'string', maxLength: 100 }, count: { type: 'integer', minimum: 1 } },
  required: ['title'],
  additionalProperties: false,
};

type Extra = Readonly<{ signal: AbortSignal }>;
type Does = (args: Readonly<{ title: string }>, extra: Extra) => CallToolResult | Promise<CallToolResult>;

/** A server as the official SDK makes them, with sessions. */
async function openSdkServer(test: Tap.Test, does: Does, enableJsonResponse = false) {
  const messages: { method: string; rpc: string; body: unknown }[] = [];
  const sessions = new Map<string, StreamableHTTPServerTransport>();
  async function begin(): Promise<StreamableHTTPServerTransport> {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => `session-${sessions.size + 1}`,
      enableJsonResponse,
      onsessioninitialized: (id) => void sessions.set(id, transport),
      onsessionclosed: (id) => void sessions.delete(id),
    });
    const server = new McpServer({ name: 'test', version: '1' });
    server.registerTool('issues.create', { inputSchema: { title: z.string() } }, does);
    await server.connect(transport as Parameters<typeof server.connect>[0]);
    return transport;
  }
  const http = createServer(async (req, res) => {
    let text = '';
    for await (const chunk of req) text += chunk;
    const body: unknown = text === '' ? undefined : JSON.parse(text);
    const { method: rpc = '' } = z.object({ method: z.string() }).safeParse(body).data ?? {};
    messages.push({ method: req.method ?? '', rpc, body });
    const known = sessions.get(String(req.headers['mcp-session-id']));
    await (known ?? (await begin())).handleRequest(req, res, body);
  });
  http.listen(0, '127.0.0.1');
  await once(http, 'listening');
  test.teardown(async () => {
    http.closeAllConnections();
    await new Promise((resolve) => http.close(resolve));
  });
  const serverUrl = `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp`;
  const settings = { kind: 'mcp', serverUrl };
  const context = { client: openClient(test, {}), account: 'a' };
  const { tools } = await mcp.discover(context, { credential: { kind: 'none' }, settings });
  messages.length = 0;
  return {
    settings,
    /** Of its tool, as it was enabled. */
    digest: tools?.[0]?.digest,
    messages,
    sessions,
    calls: (rpc: string) => messages.filter((message) => message.rpc === rpc),
  };
}

const credential = { kind: 'none' };
const text = (value: string) => ({ content: [{ type: 'text' as const, text: value }] });
const KEY = 'issues.create';

t.test('a tool is called in a session of the official SDK, which ends', async (test) => {
  for (const enableJsonResponse of [true, false]) {
    const server = await openSdkServer(test, ({ title }) => text(`made ${title}`), enableJsonResponse);
    const tools = toolsOf(mcp, { client: openClient(test, {}), credential, ...server, inputSchema: SCHEMA });
    test.same(await tools.execute(KEY, { title: 'größer' }), text('made größer'));
    test.same(await tools.read(KEY, { title: 'x' }), { data: { isError: false, ...text('made x') } });
    test.match(server.calls('tools/call'), [
      { body: { params: { name: KEY, arguments: { title: 'größer' } } } },
      { body: { params: { name: KEY, arguments: { title: 'x' } } } },
    ]);
    test.equal(server.messages.filter(({ method }) => method === 'DELETE').length, 2);
    test.equal(server.sessions.size, 0);
    const asked = server.messages.flatMap(({ rpc }) => (rpc.startsWith('tools/') ? [rpc] : []));
    test.same(asked, ['tools/list', 'tools/call', 'tools/list', 'tools/call'], 'first it is looked at');
  }
});

t.test('a tool does what its owner says that it is', async (test) => {
  const server = await openSdkServer(test, () => text('x'));
  const tools = toolsOf(mcp, { client: openClient(test, {}), credential, ...server, inputSchema: SCHEMA });
  test.equal(mcp.runtime({ key: KEY, effect: 'read', inputSchema: SCHEMA })?.effect, 'read');
  test.equal(mcp.runtime({ key: KEY, effect: 'write', inputSchema: SCHEMA })?.effect, 'write');
  await test.rejects(tools.read(KEY, { title: 'x' }, 'cursor'), CursorError);
  test.notOk(tools.canLookUp(KEY, { title: 'x' }));
  const none = toolsOf(mcp, { client: openClient(test, {}), credential, settings: null, inputSchema: SCHEMA });
  await fails(test, none.execute(KEY, { title: 'x' }), 'refused', 'without settings');
  test.equal(server.messages.length, 0);
});

t.test('a tool that fails says so to who reads, and in our words to who writes', async (test) => {
  const failed: CallToolResult = { ...text('planted-4711'), isError: true };
  const server = await openSdkServer(test, () => failed);
  const tools = toolsOf(mcp, { client: openClient(test, {}), credential, ...server, inputSchema: SCHEMA });
  test.same((await tools.read(KEY, { title: 'x' })).data, failed);
  const error = await fails(test, tools.execute(KEY, { title: 'x' }), 'failed', 'a write');
  test.match(error, { isRefusal: true, code: 'tool_error' });
  test.notMatch(JSON.stringify([error, error.message]), 'planted');
  const unknown = await fails(test, tools.execute('another', { title: 'x' }), 'failed', 'a tool that is gone');
  test.ok(unknown.isRefusal);
});

t.test('a call that nobody waits for stops at the server', async (test) => {
  const started = Promise.withResolvers<void>();
  const stopped = Promise.withResolvers<void>();
  const server = await openSdkServer(test, async (_args, { signal }) => {
    started.resolve();
    await once(signal, 'abort');
    stopped.resolve();
    return text('too late');
  });
  const leaving = new AbortController();
  const client = openClient(test, {});
  const { signal } = leaving;
  const tools = toolsOf(mcp, { client, credential, ...server, signal, inputSchema: SCHEMA });
  const done = tools.execute(KEY, { title: 'x' });
  await started.promise;
  leaving.abort(new Error('planted-4711'));
  await test.rejects(done, /planted-4711/);
  await stopped.promise;
  const [cancelled, ...more] = server.calls('notifications/cancelled');
  test.match(cancelled?.body, { params: { requestId: 2, reason: 'The caller has left.' } });
  test.equal(more.length, 0);
  test.equal(server.calls('tools/call').length, 1);
  test.equal(server.sessions.size, 0, 'and its session ends');
});

t.test('content other than text is data, or named with its size', async (test) => {
  const small = Buffer.alloc(3_000).toString('base64');
  const large = Buffer.alloc(900_000).toString('base64');
  const content: CallToolResult['content'] = [
    { type: 'image', mimeType: 'image/png', data: small },
    { type: 'audio', mimeType: 'audio/wav', data: large },
    { type: 'resource_link', uri: 'file:///a', name: 'a', mimeType: 'text/plain' },
    { type: 'resource', resource: { uri: 'file:///b', text: 'b\0c' } },
    { type: 'resource', resource: { uri: 'file:///c', blob: large } },
  ];
  const structuredContent = { rows: [{ name: 'a\ud800' }] };
  const server = await openSdkServer(test, () => ({ content, structuredContent }), true);
  const tools = toolsOf(mcp, { client: openClient(test, {}), credential, ...server, inputSchema: SCHEMA });
  const rest = [
    { type: 'audio', mimeType: 'audio/wav', sizeBytes: 900_000 },
    { type: 'resource_link', uri: 'file:///a', name: 'a', mimeType: 'text/plain' },
    { type: 'resource', resource: { uri: 'file:///b', text: 'bc' } },
    { type: 'resource', resource: { uri: 'file:///c', sizeBytes: 900_000 } },
  ];
  const structure = { structuredContent: { rows: [{ name: 'a\ufffd' }] } };
  test.same((await tools.read(KEY, { title: 'x' })).data, {
    isError: false,
    content: [{ type: 'image', mimeType: 'image/png', data: small }, ...rest],
    ...structure,
  });
  test.same(await tools.execute(KEY, { title: 'x' }), {
    content: [{ type: 'image', mimeType: 'image/png', sizeBytes: 3_000 }, ...rest],
    ...structure,
  });
});

t.test('what stays of a write is small', async (test) => {
  const long = 'x'.repeat(50_000);
  const content = Array.from({ length: 60 }, () => ({ type: 'text' as const, text: long }));
  const server = await openSdkServer(test, () => ({ content, structuredContent: { long } }), true);
  const tools = toolsOf(mcp, { client: openClient(test, {}), credential, ...server, inputSchema: SCHEMA });
  const kept = await tools.execute(KEY, { title: 'x' });
  test.ok(JSON.stringify(kept).length < 100_000);
  test.match(kept, { content: [{ type: 'text', text: /^x{3999}…$/ }], structuredContent: undefined });
  const both = { type: 'resource', resource: { uri: 'file:///a', text: 'a', blob: 'A'.repeat(4_000) } };
  const { content: files } = keptData(readResult({ content: [both] }), []);
  test.same(files, [{ type: 'resource', resource: { uri: 'file:///a', text: 'a', sizeBytes: 3_000 } }]);
});

t.test('what a server repeats of secret arguments does not stay', async (test) => {
  const does: Does = ({ title }) => ({
    content: [
      // Cut before it was hidden, a part of it would stay.
      { type: 'text', text: `${'x'.repeat(3_990)}${title}` },
      { type: 'resource', resource: { uri: `made://${title}`, text: JSON.stringify({ title }) } },
    ],
    structuredContent: { title, by: `${title}!` },
  });
  const server = await openSdkServer(test, does, true);
  const inputSchema = { ...SCHEMA, properties: { title: { type: 'string', writeOnly: true } } };
  const tools = toolsOf(mcp, { client: openClient(test, {}), credential, ...server, inputSchema });
  const title = 'to"ken-of-a-shop';
  const shown = {
    content: [
      { type: 'text', text: `${'x'.repeat(3_990)}[hidden]` },
      { type: 'resource', resource: { uri: 'made://[hidden]', text: '{"title":"[hidden]"}' } },
    ],
    structuredContent: { title: '[hidden]', by: '[hidden]!' },
  };
  test.same(await tools.execute(KEY, { title }), shown);
  // As a job does it, with what the action has kept of the schema.
  const { settings, digest } = server;
  const context = { client: openClient(test, {}), account: 'a' };
  const connection = {
    provider: mcp,
    integration: { settings },
    context,
    access: { credential, settings },
    secrets: [],
  };
  const action = { id: randomUUID(), integration_id: randomUUID(), kind: 'provider_write', tool: KEY } as const;
  const kept = { arguments: { title }, arguments_schema: inputSchema, timeout_ms: 10_000, files: [] };
  const executor = toolExecutor({} as Storage, {
    action: { ...action, ...kept },
    toolDigest: digest ?? null,
    files: [],
  });
  const ready = await executor.prepare(connection as unknown as OpenConnection);
  const outcome = 'send' in ready ? await ready.send(connection as unknown as OpenConnection) : ready;
  test.same(outcome, { outcome: 'succeeded', result: shown });
  test.match(JSON.stringify(await tools.read(KEY, { title })), JSON.stringify(title).slice(1, -1), 'who calls sees it');
});

t.test('the token that a server repeats is hidden before its text is cut', async (test) => {
  const accessToken = 'mcp-token-4711-0815';
  const does: Does = () => ({ content: [{ type: 'text', text: `${'x'.repeat(3_990)}${accessToken}` }] });
  const server = await openSdkServer(test, does, true);
  const held = { kind: 'oauth2', accessToken, refreshToken: null, expiresAt: null, scopes: [] };
  const tools = toolsOf(mcp, { client: openClient(test, {}), credential: held, ...server, inputSchema: SCHEMA });
  const shown = { content: [{ type: 'text', text: `${'x'.repeat(3_990)}[hidden]` }] };
  test.match(await tools.execute(KEY, { title: 'one' }), shown);
});

const OFFERED = { name: KEY, inputSchema: SCHEMA };

/** A server whose calls of tools get this response. */
function openFaulty(test: Tap.Test, reply: (call: Call, res: Parameters<typeof json>[0]) => unknown) {
  return openServer(test, (call, res) => {
    if (call.method === 'DELETE') return {};
    const rpc: { id?: number; method: string } = JSON.parse(call.body);
    if (rpc.id === undefined) return void res.writeHead(202).end();
    const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: { name: 'test', version: '1' } };
    if (rpc.method === 'initialize') return { jsonrpc: '2.0', id: rpc.id, result };
    if (rpc.method === 'tools/list') return { jsonrpc: '2.0', id: rpc.id, result: { tools: [OFFERED] } };
    return reply(call, res);
  });
}

const enabled = { inputSchema: SCHEMA, digest: canonicalSha256(OFFERED) };

t.test('whatever goes wrong, a call is sent once', async (test) => {
  for (const effect of ['read', 'write'] as const) {
    await failsAsDocumented(test, effect, effect, async (reply) => {
      const server = await openFaulty(test, (_call, res) => void reply(res));
      const settings = { kind: 'mcp', serverUrl: `${server.origin}/mcp` };
      const tools = toolsOf(mcp, { client: openClient(test, {}), credential, settings, ...enabled });
      const done = effect === 'read' ? tools.read(KEY, { title: 'x' }) : tools.execute(KEY, { title: 'x' });
      return { done, sent: () => server.calls.filter(({ body }) => body.includes('tools/call')).length };
    });
  }
});

t.test('an error of the protocol says whether the tool was called', async (test) => {
  for (const [code, isRefusal, reason] of [
    [-32_602, true, 'failed'],
    [-32_601, true, 'failed'],
    [-32_603, false, 'failed'],
    [-32_000, false, 'failed'],
    [-32_001, false, 'unavailable'],
  ] as const) {
    const server = await openFaulty(test, ({ body }) => {
      return { jsonrpc: '2.0', id: JSON.parse(body).id, error: { code, message: 'planted-4711' } };
    });
    const settings = { kind: 'mcp', serverUrl: `${server.origin}/mcp` };
    const tools = toolsOf(mcp, { client: openClient(test, {}), credential, settings, ...enabled });
    const error = await fails(test, tools.execute(KEY, { title: 'x' }), reason, String(code));
    test.equal(error.isRefusal, isRefusal, String(code));
    test.notMatch(JSON.stringify([error, error.message]), 'planted');
  }
});

t.test('nothing was done by a server that begins no session', async (test) => {
  const server = await openServer(test, (_call, res) => json(res, 503, {}));
  const settings = { kind: 'mcp', serverUrl: `${server.origin}/mcp` };
  const tools = toolsOf(mcp, { client: openClient(test, {}), credential, settings, inputSchema: SCHEMA });
  const error = await fails(test, tools.execute(KEY, { title: 'x' }), 'unavailable', 'a write');
  test.ok(error.isRefusal);
});

t.test('a result that is too long is not cut', async (test) => {
  const server = await openFaulty(test, ({ body }) => {
    const result = text('x'.repeat(5 * 1024 * 1024));
    return { jsonrpc: '2.0', id: JSON.parse(body).id, result };
  });
  const settings = { kind: 'mcp', serverUrl: `${server.origin}/mcp` };
  const tools = toolsOf(mcp, { client: openClient(test, {}), credential, settings, ...enabled });
  await fails(test, tools.read(KEY, { title: 'x' }), 'too_large', 'a read');
});

const issuesOf = (inputSchema: Readonly<Record<string, unknown>>, args: unknown) => {
  const parsed = mcp.runtime({ key: KEY, effect: 'write', inputSchema })?.parse(args, null);
  return parsed && 'issues' in parsed ? parsed.issues : [];
};

t.test('arguments are checked by the schema of the server', (test) => {
  test.same(issuesOf(SCHEMA, { title: 'x', count: 2 }), []);
  test.same(issuesOf(SCHEMA, { count: 0, 'a/b~': 1 }), [
    { path: ['title'], message: 'is required', code: 'invalid_type' },
    { path: ['a/b~'], message: 'is not a known field', code: 'unrecognized_keys' },
    { path: ['count'], message: 'must be >= 1', code: 'too_small' },
  ]);
  test.match(issuesOf(SCHEMA, []), [{ path: [], message: 'must be an object' }]);
  const nested = {
    type: 'object',
    properties: { rows: { type: 'array', items: { $ref: '#/definitions/row' } } },
    definitions: { row: { type: 'object', properties: { 'a/b': { enum: ['x'] } } } },
  };
  test.match(issuesOf(nested, { rows: [{}, { 'a/b': 'y' }] }), [{ path: ['rows', '1', 'a/b'], code: 'invalid_value' }]);
  // Of an older draft.
  const tuple = { type: 'object', properties: { pair: { items: [{ type: 'string' }, { type: 'number' }] } } };
  test.same(issuesOf(tuple, { pair: ['a', 1] }), []);
  test.match(issuesOf(tuple, { pair: [1, 1] }), [{ path: ['pair', '0'] }]);
  test.match(issuesOf({ type: 'object', required: ['toString'] }, {}), [{ path: ['toString'] }]);
  test.equal(
    issuesOf(
      { type: 'object', additionalProperties: false },
      Object.fromEntries(Array.from('x'.repeat(500), (x, n) => [x + n, 1])),
    ).length,
    50,
  );
  test.end();
});

t.test('a schema that is not one, or that takes too long, lets nothing pass', (test) => {
  for (const schema of [
    { type: 'nothing' },
    { type: 'object', minProperties: 'x' },
    { $ref: '#/$defs/missing' },
    { type: 'object', properties: { a: { required: [{ toString: 'x' }] } } },
  ]) {
    test.match(issuesOf(schema, {}), [{ path: [], message: /^cannot be checked/ }], JSON.stringify(schema));
  }
  const $defs: Record<string, unknown> = { d40: { type: 'array' } };
  for (let level = 0; level < 40; level += 1) {
    const next = { $ref: `#/$defs/d${level + 1}` };
    $defs[`d${level}`] = { anyOf: [{ allOf: [next, { not: {} }] }, next] };
  }
  const begun = performance.now();
  const slow = issuesOf({ type: 'object', properties: { a: { $ref: '#/$defs/d0' } }, $defs }, { a: 1 });
  test.match(slow, [{ path: [], message: /^take too long/ }]);
  test.ok(performance.now() - begun < 5_000);
  test.end();
});

t.test('a summary names server, tool and arguments, with nothing hidden', async (test) => {
  const settings = { kind: 'mcp', serverUrl: 'https://mcp.example/v1/secret-path' };
  const open = { type: 'object' };
  const tools = toolsOf(mcp, { client: openClient(test, {}), credential, settings, inputSchema: open });
  test.equal(
    tools.summary(KEY, { title: 'a\n"b"', to: 'x\u202ey' }),
    'Call the tool issues.create of mcp.example with {"title":"a\\n\\"b\\"","to":"x\\u{202e}y"}',
  );
  const long = tools.summary(KEY, { body: '😀'.repeat(1_000), last: 'seen' });
  test.match(long, /… \(2000 characters\)","last":"seen"}$/);
  test.ok(long.length < 500);
  const many = tools.summary(KEY, Object.fromEntries(Array.from('x'.repeat(900), (x, n) => [x + n, n])));
  test.match(many, /… \(\d+ characters\)$/);
  test.ok(many.length < 1_700);
});
