import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import t from 'tap';
import { startTestApp } from '../../support/app.ts';
import { sampleEndpoints } from './endpoints.ts';

const app = await startTestApp(t, { endpoints: sampleEndpoints() });
const organization = '018f3c1e-7a2b-7c3d-8e4f-5a6b7c8d9e0f';
const things = `/organizations/${organization}/things`;

/** A request of raw bytes; everything that came back until the server closed, or `until` is in it. */
async function raw(bytes: string | Buffer, until?: string): Promise<string> {
  const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
  let text = '';
  const done = new Promise<void>((resolve, reject) => {
    socket.on('data', (chunk) => {
      text += chunk;
      if (until && text.includes(until)) resolve();
    });
    socket
      .on('end', resolve)
      .on('close', () => resolve())
      .on('error', reject);
  });
  socket.write(bytes);
  await done;
  socket.destroy();
  return text;
}

t.test('a success has its envelope, with the ids of the request', async (t) => {
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
  const reply = await app.owner.get(`${things}/a%20b`, { headers: { 'x-request-id': 'abc:1.2_3-4', traceparent } });
  t.equal(reply.status, 200);
  t.match(reply.body, {
    success: true,
    statusCode: 200,
    message: 'OK',
    data: { organizationId: organization, thing: 'a b' },
  });
  t.equal(reply.body.meta.requestId, 'abc:1.2_3-4');
  t.equal(reply.headers.get('x-request-id'), 'abc:1.2_3-4');
  t.equal(reply.body.meta.traceId, '4bf92f3577b34da6a3ce929d0e0e4736');
  t.ok(Math.abs(Date.parse(reply.body.meta.timestamp) - Date.now()) < 5_000);
  t.equal(reply.headers.get('cache-control'), 'no-store');
  t.equal(reply.headers.get('x-content-type-options'), 'nosniff');
  t.equal(reply.headers.get('x-powered-by'), null);

  const created = await app.owner.post(things, { name: 'x' });
  t.match(created.body, { statusCode: 201, message: 'The thing is made.', data: { name: 'x' } });
});

t.test('request ids that are not safe to repeat, and broken trace parents, are replaced and dropped', async (t) => {
  for (const id of ['a b', 'x'.repeat(129), 'é', '<script>']) {
    const reply = await app.owner.get(`${things}/a`, { headers: { 'x-request-id': id } }).catch(() => undefined);
    if (reply) t.match(reply.body.meta.requestId, /^[0-9a-f-]{36}$/);
  }
  const broken = [
    '00-00000000000000000000000000000000-00f067aa0ba902b7-01',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01',
    'ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01',
    '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-extra',
    '00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01',
    'nonsense',
  ];
  for (const traceparent of broken) {
    const reply = await app.owner.get(`${things}/a`, { headers: { traceparent } });
    t.equal(reply.body.meta.traceId, undefined, traceparent);
  }
});

t.test('unknown paths are 404, other methods 405 with Allow, and HEAD works where GET does', async (t) => {
  t.match(await app.owner.get('/nowhere'), { status: 404, code: 'not_found', body: { message: /\/docs/ } });
  t.match(await app.owner.get('/Organizations'), { status: 404 }, 'paths are case sensitive');
  t.match(await app.owner.get(`${things}/a/`), { status: 404 }, 'a trailing slash is another path');
  const wrong = await app.owner.patch(`${things}/a`, {});
  t.match(wrong, { status: 405, code: 'method_not_allowed' });
  t.equal(wrong.headers.get('allow'), 'DELETE, GET, HEAD');
  const options = await app.owner.send('OPTIONS', things, undefined);
  t.match(options, { status: 405 });
  t.equal(options.headers.get('allow'), 'POST');

  const get = await app.owner.fetch(`${things}/a`);
  const head = await app.owner.fetch(`${things}/a`, { method: 'HEAD' });
  t.equal(head.status, 200);
  t.equal(head.headers.get('content-length'), get.headers.get('content-length'));
  t.equal(await head.text(), '');
});

t.test('wrong parameters are 400 with an issue each', async (t) => {
  const reply = await app.owner.get('/organizations/not-a-uuid/things/a', {
    query: { flag: 'maybe', word: 'much too long a word', other: 1 },
  });
  t.match(reply, { status: 400, code: 'validation_failed' });
  t.same(reply.body.error.issues?.map((issue) => issue.path).sort(), ['flag', 'organizationId', 'other', 'word']);
  const twice = await app.owner.get(`${things}/a?word=a&word=b`);
  t.match(twice.body.error.issues, [{ path: 'word' }]);
  t.match((await app.owner.get(`${things}/a?flag=true`)).data, { flag: true });
});

t.test('percent-encoding that is broken is 400, also on unknown paths', async (t) => {
  for (const path of [`${things}/%zz`, `${things}/%c3%28`, '/%zz']) {
    t.match(await app.owner.get(path), { status: 400, code: 'validation_failed' }, path);
  }
});

t.test('a body is checked strictly, at every depth', async (t) => {
  const reply = await app.owner.post(things, { count: 1.5, inner: { a: 'x', b: 1 }, foreign: true, more: 1 });
  t.match(reply, { status: 400, code: 'validation_failed' });
  t.same(reply.body.error.issues?.map((issue) => [issue.path, issue.code]).sort(), [
    ['count', 'invalid_type'],
    ['foreign', 'unrecognized_keys'],
    ['inner.b', 'unrecognized_keys'],
    ['more', 'unrecognized_keys'],
    ['name', 'invalid_type'],
  ]);
  const missing = await app.owner.post(things);
  t.match(missing.body.error.issues, [{ path: 'name', message: 'is required' }], 'no body at all names the fields');
  for (const body of [null, [], 'text', 1, true]) {
    const other = await app.owner.send('POST', things, JSON.stringify(body), {
      headers: { 'content-type': 'application/json' },
    });
    t.match(other, { status: 400, code: 'validation_failed' }, JSON.stringify(body));
  }
  const many = Object.fromEntries(Array.from({ length: 5_000 }, (_, index) => [`k${index}`, 1]));
  const bounded = await app.owner.post(things, many);
  t.ok((bounded.body.error.issues?.length ?? 0) <= 100, 'the response stays small');
});

t.test('where no body is named, only none or {} is accepted', async (t) => {
  t.equal((await app.owner.delete(`${things}/a`)).status, 200);
  t.equal((await app.owner.send('DELETE', `${things}/a`, {})).status, 200);
  t.match(await app.owner.send('DELETE', `${things}/a`, { force: true }), { status: 400, code: 'validation_failed' });
  t.match(await app.owner.send('DELETE', `${things}/a`, []), { status: 400, code: 'validation_failed' });
});

t.test('bodies that are not JSON are refused', async (t) => {
  const json = { 'content-type': 'application/json' };
  for (const text of ['{', '{"name":}', '{"name":"a"} x', "{'name':1}", '{"name":"a",}', 'NaN', ' ']) {
    const reply = await app.owner.send('POST', things, text, { headers: json });
    t.match(reply, { status: 400, code: 'validation_failed' }, text);
  }
  const utf8 = await app.owner.send('POST', things, Buffer.from('7b226e616d65223a22ff227d', 'hex'), { headers: json });
  t.match(utf8, { status: 400, body: { error: { issues: [{ code: 'invalid_encoding' }] } } });

  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=latin1',
    'application/jsonx',
  ]) {
    const reply = await app.owner.send('POST', things, '{"name":"a"}', { headers: { 'content-type': type } });
    t.match(reply, { status: 415, code: 'unsupported_media_type' }, type);
  }
  const zipped = await app.owner.send('POST', things, '{"name":"a"}', {
    headers: { ...json, 'content-encoding': 'gzip' },
  });
  t.match(zipped, { status: 415 });
  const utf = await app.owner.send('POST', things, '{"name":"a"}', {
    headers: { 'content-type': 'application/json; charset="UTF-8"' },
  });
  t.equal(utf.status, 201);
});

t.test('text that Postgres cannot hold is 400 wherever it stands', async (t) => {
  const bodies = [
    { name: 'a\0b' },
    { name: 'a', anything: { deep: [{ 'k\0': 1 }] } },
    { name: 'a', anything: ['\ud800'] },
    { name: 'a', anything: { k: ['x', ['\0']] } },
  ];
  for (const body of bodies) {
    const reply = await app.owner.post(things, body);
    t.match(reply, { status: 400, code: 'validation_failed', body: { error: { issues: [{ code: 'invalid_text' }] } } });
  }
  t.match(await app.owner.get(`${things}/a%00b`), { status: 400, body: { error: { issues: [{ path: 'thing' }] } } });
  t.match(await app.owner.get(`${things}/a?word=%00`), {
    status: 400,
    body: { error: { issues: [{ path: 'word' }] } },
  });
  const escaped = await app.owner.post(things, { name: 'a\\u0000b', anything: '😀' });
  t.equal(escaped.status, 201, 'a backslash and six letters are just text');
});

t.test('keys, numbers and nesting that could do harm are refused or harmless', async (t) => {
  const headers = { 'content-type': 'application/json' };
  const send = (text: string) => app.owner.send('POST', things, text, { headers });
  t.match(await send('{"name":"a","__proto__":{"polluted":1}}'), { status: 400, code: 'validation_failed' });
  t.match(await send('{"name":"a","anything":{"__proto__":1}}'), { status: 400, code: 'validation_failed' });
  t.equal(({} as Record<string, unknown>)['polluted'], undefined);
  t.match(await send('{"name":"a","name":"b"}'), { status: 201, data: { name: 'b' } });
  t.match(await send('{"name":"a","anything":1e999}'), {
    status: 400,
    body: { error: { issues: [{ code: 'too_big' }] } },
  });
  const deep = `{"name":"a","anything":${'['.repeat(100_000)}${']'.repeat(100_000)}}`;
  t.match(await send(deep), { status: 400, body: { error: { issues: [{ code: 'too_deep' }] } } });
  const objects = `{"name":"a","anything":${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}}`;
  t.match(await send(objects), { status: 400, body: { error: { issues: [{ code: 'too_deep' }] } } });
  const huge = `{"name":"a","anything":[${'1,'.repeat(400_000)}1]}`;
  t.equal((await send(huge)).status, 201, 'wide is fine');
});

t.test('a JSON body over 1 MiB is 413 that the client can read', async (t) => {
  const exact = JSON.stringify({ name: 'x'.repeat(1024 * 1024 - 11) });
  t.equal(exact.length, 1024 * 1024);
  const headers = { 'content-type': 'application/json' };
  t.equal((await app.owner.send('POST', things, exact, { headers })).status, 201, 'exactly 1 MiB');
  t.match(await app.owner.send('POST', things, `${exact} `, { headers }), { status: 413, code: 'payload_too_large' });

  for (const megabytes of [2, 12]) {
    const body = JSON.stringify({ name: 'x'.repeat(megabytes * 1024 * 1024) });
    for (let round = 0; round < 5; round += 1) {
      const reply = await app.owner.send('POST', things, body, { headers });
      t.match(reply, { status: 413, code: 'payload_too_large' }, `${megabytes} MiB with a length`);
    }
  }
});

t.test('an endless chunked body is cut after its 413', async (t) => {
  const { hostname, port } = new URL(app.url);
  const outgoing = request({
    hostname,
    port,
    path: things,
    method: 'POST',
    headers: { 'content-type': 'application/json' },
  });
  const closed = once(outgoing, 'close');
  outgoing.on('error', () => {});
  const chunk = Buffer.alloc(64 * 1024, 'x');
  let sent = 0;
  const pump = () => {
    while (!outgoing.destroyed && outgoing.write(chunk)) sent += chunk.length;
    if (!outgoing.destroyed) outgoing.once('drain', pump);
  };
  outgoing.write('{"name":"');
  pump();
  const [response] = await once(outgoing, 'response');
  t.equal(response.statusCode, 413);
  t.equal(response.headers.connection, 'close');
  let text = '';
  response.on('data', (part: Buffer) => {
    text += part;
  });
  response.on('error', () => {});
  await closed;
  t.match(JSON.parse(text), { error: { code: 'payload_too_large' } });
  t.ok(sent < 64 * 1024 * 1024, `the server stopped reading (${sent} bytes were sent)`);
});

t.test('Expect: 100-continue gets its response before the body, or refused without it', async (t) => {
  const { hostname, port } = new URL(app.url);
  const head = { hostname, port, path: things, method: 'POST' };
  const wanted = request({
    ...head,
    headers: { 'content-type': 'application/json', 'content-length': 12, expect: '100-continue' },
  });
  wanted.flushHeaders();
  await once(wanted, 'continue');
  wanted.end('{"name":"a"}');
  const [accepted] = await once(wanted, 'response');
  t.equal(accepted.statusCode, 201);
  accepted.resume();

  const refused = request({
    ...head,
    headers: { 'content-type': 'application/json', 'content-length': 99_000_000, expect: '100-continue' },
  });
  refused.on('continue', () => t.fail('asked for a body that it does not want'));
  refused.on('error', () => {});
  refused.flushHeaders();
  const [response] = await once(refused, 'response');
  t.equal(response.statusCode, 413);
  response.resume();
  await once(response, 'end');
  refused.destroy();
});

t.test('what is not HTTP gets a response or is cut, and the server goes on', async (t) => {
  t.match(await raw('NONSENSE\r\n\r\n'), /^HTTP\/1.1 400 Bad Request[\s\S]*"validation_failed"/);
  t.match(await raw(`GET / HTTP/1.1\r\nhost: localhost\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`), /^HTTP\/1.1 431 /);
  t.match(
    await raw('POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ntransfer-encoding: chunked\r\n\r\n'),
    /^HTTP\/1.1 400 /,
  );
  t.match(await raw('GET /healthz HTTP/1.1\r\n\r\n'), /^HTTP\/1.1 400 /, 'HTTP/1.1 without a Host');
  t.equal((await app.owner.get('/healthz')).status, 200);
});

t.test('an absolute request target and a doubled slash are handled', async (t) => {
  t.match(
    await raw('GET http://localhost/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'),
    /^HTTP\/1.1 200 /,
  );
  t.match(await raw('GET //healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'), /^HTTP\/1.1 404 /);
  t.match(await raw('OPTIONS * HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n'), /^HTTP\/1.1 404 /);
});

t.test('in tests, a response that differs from its description is a logged 500', async (t) => {
  const wrong = await app.owner.get('/wrong-response');
  t.match(wrong, { status: 500, code: 'internal_error' });
  t.match(await app.owner.get('/wrong-response?error=true'), { status: 500, code: 'internal_error' });
  const reasons = app.logged.map((line) => JSON.stringify(line));
  t.ok(reasons.some((line) => line.includes('getWrongResponse') && line.includes('does not have')));
  t.ok(reasons.some((line) => line.includes('418 teapot is not a declared error')));
});

t.test('an unforeseen error shows nothing but the request id, which finds it in the log', async (t) => {
  await app.owner.get('/crash');
  const reply = await app.owner.get('/crash');
  t.match(reply, { status: 500, code: 'internal_error' });
  t.notMatch(JSON.stringify(reply.body), /hunter2|TypeError/);
  const line = app.logged.find((one) => one['requestId'] === reply.body.meta.requestId && one['err']);
  t.match(line, { level: 'error', err: { type: 'TypeError' } });
});
