import type { ServerResponse } from 'node:http';
import type * as Tap from 'tap';
import t from 'tap';
import {
  clientFor,
  discoverAuthorization,
  oauth2,
  widenedScopes,
} from '../../../engine/providers/mcp/authorization.ts';
import { mcp } from '../../../engine/providers/mcp/index.ts';
import { safeSchema } from '../../../engine/providers/mcp/schema.ts';
import { responseFinder } from '../../../engine/providers/mcp/session.ts';
import { buckets } from '../../../engine/providers/mcp/site.ts';
import { readTool } from '../../../engine/providers/mcp/tools.ts';
import { type Call, fails, json, openClient, openServer, type Server } from './support.ts';

const PLANTED = 'planted-4711';
const tool = (name: string, more: object = {}) => ({
  name,
  description: `Does ${name}.`,
  inputSchema: { type: 'object', properties: { q: { type: 'string', pattern: '^(a+)+$' } } },
  ...more,
});

type Rpc = Readonly<{ id?: number; method: string; params: Readonly<Record<string, unknown>> }>;
type Answer = (rpc: Rpc, call: Call, res: ServerResponse) => object | undefined;

const initialized = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: {} },
  serverInfo: { name: 'test', version: '1' },
};

/** A server as the specification has it, without sessions; `answer` says what its methods result in. */
function openMcp(test: Tap.Test, answer: Answer): Promise<Server> {
  return openServer(test, (call, res) => {
    if (call.method !== 'POST') return void res.writeHead(405).end();
    const rpc: Rpc = JSON.parse(call.body);
    if (rpc.id === undefined) return void res.writeHead(202).end();
    const result = rpc.method === 'initialize' ? initialized : answer(rpc, call, res);
    return result === undefined ? undefined : { jsonrpc: '2.0', id: rpc.id, result };
  });
}

const accessTo = (server: Server, credential: object = { kind: 'none' }) => ({
  credential,
  settings: { kind: 'mcp', serverUrl: `${server.origin}/mcp` },
});

t.test('tools of all pages are read, as writes that others see', async (test) => {
  const server = await openMcp(test, ({ params }) =>
    params['cursor'] === undefined
      ? { tools: [tool('search', { annotations: { readOnlyHint: true } })], nextCursor: 'two' }
      : { tools: [tool('send', { title: 'Send it' })] },
  );
  const context = { client: openClient(test, {}), account: 'i1' };
  const found = await mcp.discover(context, accessTo(server));
  test.match(found, {
    truncated: false,
    items: [
      { name: 'search', problem: null },
      { name: 'send', title: 'Send it', problem: null },
    ],
    tools: [
      { key: 'search', title: 'search', effect: 'write', risk: 'external', digest: /^[0-9a-f]{64}$/ },
      { key: 'send', title: 'Send it' },
    ],
  });
  test.same(found.tools?.[0]?.inputSchema, { type: 'object', properties: { q: { type: 'string' } } });
  const { host } = new URL(server.origin);
  test.match(await mcp.verify(context, accessTo(server)), { subject: `${server.origin}/mcp`, label: host });
  await fails(test, mcp.discover(context, { ...accessTo(server), settings: null }), 'refused', 'without settings');
});

t.test('a token is sent, and an authorization that is asked for is said', async (test) => {
  const server = await openServer(test, ({ headers }, res) => {
    if (headers.authorization === 'Bearer good') return undefined;
    json(res, 401, { message: PLANTED }, { 'www-authenticate': 'Bearer' });
    return undefined;
  });
  const context = { client: openClient(test, {}), account: 'i1' };
  const error = await fails(test, mcp.verify(context, accessTo(server)), 'rejected', 'without a token');
  test.notMatch(error.message, PLANTED);
  const open = await openMcp(test, () => ({ tools: [] }));
  const credential = { kind: 'oauth2', accessToken: 'good', refreshToken: null, expiresAt: null, scopes: ['a'] };
  test.match(await mcp.verify(context, accessTo(open, credential)), { grantedScopes: ['a'] });
  test.match(open.calls, [{ headers: { authorization: 'Bearer good' } }]);
});

t.test('a stream of events is read to the response, and may stay open', async (test) => {
  const server = await openMcp(test, (rpc, _call, res) => {
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    res.write(': hello\n\n');
    res.write('data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}\n\n');
    res.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: rpc.id, result: { tools: [tool('search')] } })}\n\n`);
    return undefined;
  });
  const found = await mcp.discover({ client: openClient(test, {}), account: 'i1' }, accessTo(server));
  test.match(found.tools, [{ key: 'search' }]);
});

t.test('a response is found in a stream however its lines end, and wherever its chunks do', (test) => {
  const found = JSON.stringify({ jsonrpc: '2.0', id: 7, result: { text: 'größer' } });
  const others = ['{"jsonrpc":"2.0","method":"x"}', '{"id":8,"result":{}}', 'no JSON', '{"id":7}'];
  for (const end of ['\n', '\r\n', '\r']) {
    const stream = [': hello', '', ...others.flatMap((one) => [`data: ${one}`, '']), `data: ${found}`, '', ''].join(
      end,
    );
    const bytes = Buffer.from(stream);
    for (const size of [1, 2, 3, bytes.length]) {
      const finder = responseFinder(7);
      let at = 0;
      let response: string | undefined;
      for (; response === undefined && at < bytes.length; at += size) {
        response = finder.add(bytes.subarray(at, at + size));
      }
      test.equal(response, found, `${JSON.stringify(end)} in chunks of ${size}`);
    }
  }
  test.end();
});

t.test('each byte of a stream is looked at a fixed number of times', (test) => {
  const chunks = [
    ...Array.from({ length: 200 }, () => `data: "${'x'.repeat(1_000)}"\n\n`),
    ...Array.from({ length: 200 }, () => 'x'.repeat(1_000)),
    `\r\n${'\n'.repeat(50_000)}`,
  ].map((one) => Buffer.from(one));
  const total = chunks.reduce((sum, { length }) => sum + length, 0);
  const decode = test.capture(TextDecoder.prototype, 'decode', TextDecoder.prototype.decode);
  const search = test.capture(String.prototype, 'indexOf', String.prototype.indexOf);
  const finder = responseFinder(1);
  for (const chunk of chunks) finder.add(chunk);
  const decoded = decode().reduce((sum, { args: [input] }) => sum + (input?.byteLength ?? 0), 0);
  const searched = search().reduce((sum, call) => {
    const { length } = String(call.receiver);
    const found = 'returned' in call ? Number(call.returned) : -1;
    return sum + (found < 0 ? length : found + 1) - (call.args[1] ?? 0);
  }, 0);
  decode.restore();
  search.restore();
  test.equal(decoded, total);
  test.ok(searched > 0 && searched <= 4 * total, `${searched} characters for ${total} bytes`);
  test.end();
});

t.test('a server that ends too soon, breaks off or says an error is no server of MCP', async (test) => {
  const answers: Record<string, Answer> = {
    'an empty stream': (_rpc, _call, res) =>
      void res.writeHead(200, { 'content-type': 'text/event-stream' }).end(`data: {"${PLANTED}":1}\n\n`),
    'a page': (_rpc, _call, res) => void res.writeHead(200, { 'content-type': 'text/html' }).end(PLANTED),
    'an error': ({ id }, _call, res) =>
      void json(res, 200, { jsonrpc: '2.0', id, error: { code: -32_000, message: PLANTED } }),
    'no list': () => ({ tools: PLANTED }),
  };
  for (const [what, answer] of Object.entries(answers)) {
    const server = await openMcp(test, answer);
    const context = { client: openClient(test, {}), account: 'i1' };
    const error = await fails(test, mcp.discover(context, accessTo(server)), 'failed', what);
    test.notMatch(JSON.stringify([error.message, error.code]), PLANTED);
  }
});

t.test('a tool changes its digest with anything in it, and with the order of nothing', (test) => {
  const digest = (given: unknown) => readTool(given).tool?.digest;
  const one = tool('search');
  test.equal(digest(one), digest({ ...one }));
  test.equal(digest({ inputSchema: one.inputSchema, name: one.name, description: one.description }), digest(one));
  for (const more of [
    { description: 'x' },
    { annotations: { readOnlyHint: true } },
    { outputSchema: { type: 'object' } },
  ]) {
    test.not(digest({ ...one, ...more }), digest(one));
  }
  test.end();
});

t.test('the server is kept as the address that is called', (test) => {
  const kept = (serverUrl: string) => mcp.settings?.schema.safeParse({ kind: 'mcp', serverUrl }).data;
  for (const text of ['https:mcp.example/a', 'https:\\\\MCP.example\\a', ' \u0001https://mcp.example/../a#']) {
    test.same(kept(text), { kind: 'mcp', serverUrl: 'https://mcp.example/a' }, text);
  }
  test.end();
});

t.test('each server that a connection calls has a budget of its own', (test) => {
  const context = { account: 'integration' } as Parameters<typeof buckets>[0];
  const [first, again, other] = ['https://a.example/x', 'https://a.example/y', 'https://b.example/x'].map(
    (url) => buckets(context, url)[0]?.key,
  );
  test.equal(first, again);
  test.not(first, other);
  test.end();
});

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) value = [value];
  return value;
}

t.test('tools that cannot be used are named with their problem', (test) => {
  let deep: object = { type: 'string' };
  for (let depth = 0; depth < 100; depth += 1) deep = { type: 'array', items: deep };
  const schema = (properties: object) => ({ inputSchema: { type: 'object', properties } });
  const problems: [object, string][] = [
    [tool('a', schema({ q: { $ref: 'https://evil.example/schema.json' } })), 'remote_reference'],
    [tool('b', schema({ q: { allOf: [{ $dynamicRef: '#x' }] } })), 'remote_reference'],
    [tool('c', schema({ q: deep })), 'too_deep'],
    [tool('d', schema({ q: { description: 'x'.repeat(70_000) } })), 'schema_too_large'],
    [tool('e', schema({ q: 'string' })), 'not_a_schema'],
    [tool('f', { inputSchema: { type: 'string' } }), 'not_a_tool'],
    [tool('bad name'), 'not_a_tool'],
    [{}, 'not_a_tool'],
    [tool('g', { title: 'a\0b' }), 'not_storable'],
    [tool('h', schema({ 'a\0b': { type: 'string' } })), 'not_storable'],
    [tool('i', { annotations: { a: '\ud800' } }), 'not_storable'],
    [tool('j', schema({ q: { minimum: Number.POSITIVE_INFINITY } })), 'not_storable'],
    [tool('k', schema({ q: { enum: [nested(70)] } })), 'too_deep'],
    [tool('l', schema({ q: { default: nested(20_000) } })), 'too_deep'],
  ];
  for (const [given, problem] of problems) test.match(readTool(given), { problem, tool: null }, problem);
  test.equal(
    readTool({ name: `${'x'.repeat(127)}😀\0` }).name,
    `${'x'.repeat(127)}\ufffd`,
    'names are cut and cleaned',
  );
  test.end();
});

t.test('a schema keeps its meaning without patterns, and names stay names', (test) => {
  const given = JSON.parse(`{
    "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://evil.example/", "type": "object",
    "properties": { "pattern": { "type": "string", "pattern": "(a+)+$" }, "__proto__": { "type": "null" }, "x": { "$ref": "#/$defs/y" } },
    "patternProperties": { "(a+)+$": {} }, "required": ["pattern"], "additionalProperties": false,
    "$defs": { "y": { "enum": [{ "$ref": "https://data.example/" }] } }, "x-own": 1
  }`);
  const safe = safeSchema(given);
  test.equal(
    JSON.stringify(safe),
    JSON.stringify(
      JSON.parse(`{
        "type": "object",
        "properties": { "pattern": { "type": "string" }, "__proto__": { "type": "null" }, "x": { "$ref": "#/$defs/y" } },
        "required": ["pattern"], "additionalProperties": false,
        "$defs": { "y": { "enum": [{ "$ref": "https://data.example/" }] } }
      }`),
    ),
  );
  test.equal(safeSchema(true), true);
  test.end();
});

type ProtectedOptions = Readonly<{ resource?: (origin: string) => object; server?: object; header?: string }>;

/** A server behind an authorization server of the same origin, whose metadata is as given. */
async function openProtected(test: Tap.Test, more: ProtectedOptions = {}) {
  const server: Server = await openServer(test, ({ url }, res) => {
    const { origin } = server;
    if (url.pathname === '/mcp') {
      json(res, 401, {}, { 'www-authenticate': more.header ?? 'Bearer scope="files:read files:write"' });
      return undefined;
    }
    if (url.pathname === '/.well-known/oauth-protected-resource/mcp') {
      return { resource: `${origin}/mcp`, authorization_servers: [`${origin}/as`], ...more.resource?.(origin) };
    }
    if (url.pathname === '/.well-known/openid-configuration/as') {
      return {
        issuer: `${origin}/as`,
        authorization_endpoint: `${origin}/as/authorize`,
        token_endpoint: `${origin}/as/token`,
        registration_endpoint: `${origin}/as/register`,
        code_challenge_methods_supported: ['S256'],
        ...more.server,
      };
    }
    if (url.pathname === '/as/register') {
      json(res, 201, { client_id: 'registered-1', token_endpoint_auth_method: 'none' });
      return undefined;
    }
    json(res, 404, {});
    return undefined;
  });
  return server;
}

const redirectUri = 'https://runner.example/oauth/mcp/callback';

t.test('how a server is authorized is found where the specification says', async (test) => {
  const server = await openProtected(test);
  const context = { client: openClient(test, {}), account: 'i1' };
  const found = await discoverAuthorization(context, `${server.origin}/mcp`);
  test.match(found, {
    resource: `${server.origin}/mcp`,
    scopes: ['files:read', 'files:write'],
    server: { metadata: { issuer: `${server.origin}/as`, token_endpoint: `${server.origin}/as/token` } },
  });
  test.same(
    server.calls.map(({ url }) => url.pathname),
    [
      '/mcp',
      '/.well-known/oauth-protected-resource/mcp',
      '/.well-known/oauth-authorization-server/as',
      '/.well-known/openid-configuration/as',
    ],
  );
  if (!found) throw new Error('nothing found');
  const registered = { configured: undefined, registered: undefined, redirectUri };
  test.match(await clientFor(context, found, registered), {
    client: { id: 'registered-1', secret: undefined },
    isNew: true,
  });
  const known = { id: 'known', secret: undefined, authentication: 'post' } as const;
  test.match(await clientFor(context, found, { ...registered, registered: known }), { client: known, isNew: false });
  const configured = { kind: 'registered', id: 'beforehand' } as const;
  test.match(await clientFor(context, found, { ...registered, configured }), { client: { id: 'beforehand' } });
  const open = await openMcp(test, () => ({}));
  test.equal(await discoverAuthorization(context, `${open.origin}/mcp`), null, 'of a server that asks for nothing');
});

t.test('metadata is read without what cannot be stored', async (test) => {
  const server = await openProtected(test, {
    header: 'Bearer',
    resource: () => ({ scopes_supported: ['files:\0read', 'a\ud800b'] }),
  });
  const context = { client: openClient(test, {}), account: 'i1' };
  test.match(await discoverAuthorization(context, `${server.origin}/mcp`), { scopes: ['files:read', 'a\ufffdb'] });
});

t.test('a metadata document is the client where the server reads such', async (test) => {
  const configured = { kind: 'metadata', url: 'https://runner.example/client.json' } as const;
  for (const isSupported of [true, false]) {
    const server = await openProtected(test, { server: { client_id_metadata_document_supported: isSupported } });
    const context = { client: openClient(test, {}), account: 'i1' };
    const found = await discoverAuthorization(context, `${server.origin}/mcp`);
    if (!found) throw new Error('nothing found');
    const { client } = await clientFor(context, found, { configured, registered: undefined, redirectUri });
    test.equal(client.id, isSupported ? configured.url : 'registered-1');
  }
});

t.test('metadata that leads elsewhere is refused', async (test) => {
  const other = await openServer(test, () => ({}));
  const cases: [string, ProtectedOptions, 'failed' | 'refused'][] = [
    ['without PKCE', { server: { code_challenge_methods_supported: undefined } }, 'failed'],
    ['plain PKCE', { server: { code_challenge_methods_supported: ['plain'] } }, 'failed'],
    ['another issuer', { server: { issuer: 'https://accounts.example' } }, 'failed'],
    ['another resource', { resource: () => ({ resource: 'https://bank.example/mcp' }) }, 'failed'],
    ['a part of another path', { resource: (origin) => ({ resource: `${origin}/mc` }) }, 'failed'],
    ['a server on http', { resource: () => ({ authorization_servers: ['http://as.example'] }) }, 'refused'],
    ['a browser on http', { server: { authorization_endpoint: 'http://as.example/authorize' } }, 'refused'],
    ['a script', { server: { authorization_endpoint: 'javascript:alert(1)' } }, 'refused'],
    ['metadata on http', { header: 'Bearer resource_metadata="http://metadata.example/"' }, 'refused'],
  ];
  for (const [what, more, reason] of cases) {
    const server = await openProtected(test, more);
    const context = { client: openClient(test, {}), account: 'i1' };
    await fails(test, discoverAuthorization(context, `${server.origin}/mcp`), reason, what);
  }
  test.equal(other.calls.length, 0);
});

t.test('metadata and redirects that lead to private addresses are not followed', async (test) => {
  const hidden = await openServer(test, () => ({}));
  const server = await openServer(test, ({ url }, res) => {
    if (url.pathname === '/mcp') json(res, 401, {}, { 'www-authenticate': 'Bearer' });
    else res.writeHead(302, { location: `${hidden.origin}/` }).end();
  });
  const context = { client: openClient(test, {}), account: 'i1' };
  await fails(test, discoverAuthorization(context, `${server.origin}/mcp`), 'failed', 'a redirect');
  const chosen = { ...context, client: openClient(test, {}, { allowPrivateAddresses: false }) };
  const serverUrl = hidden.origin.replace('http:', 'https:');
  await fails(test, discoverAuthorization(chosen, serverUrl), 'refused', 'chosen');
  test.equal(hidden.calls.length, 0);
});

t.test('a step-up asks for what is granted and what is missing', (test) => {
  test.same(widenedScopes(['a', 'b'], ['b', 'c']), ['a', 'b', 'c']);
  const many = Array.from({ length: 90 }, (_, index) => `s${index}`);
  test.equal(widenedScopes([], many).length, 50);
  test.end();
});

t.test('a token that is not taken any more leaves what was granted, at the same server alone', async (test) => {
  const { origin } = await openProtected(test);
  const context = { client: openClient(test, {}), account: 'i1' };
  const settings = { kind: 'mcp', serverUrl: `${origin}/mcp` };
  const asked = ['files:read', 'files:write'];
  const scopesOf = async (accessToken: string | null, issuer = `${origin}/as`) =>
    (await oauth2.discover(context, { settings, connected: { issuer, accessToken, scopes: ['granted'], missing: [] } }))
      ?.scopes;
  for (const token of [null, 'over']) test.same(await scopesOf(token), ['granted', ...asked]);
  test.same(await scopesOf(null, origin), asked);
});
