import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import t from 'tap';
import { startTestApp } from '../../support/app.ts';
import { until } from '../../support/wait.ts';
import { sampleEndpoints } from './endpoints.ts';

const app = await startTestApp(t, { endpoints: sampleEndpoints() });

t.test('uploads stream, with their media type and size checked', async (t) => {
  const bytes = Buffer.alloc(3_000_000, 7);
  t.match(await app.owner.put('/files/a/b%20c.txt', bytes), {
    status: 201,
    data: { path: 'a/b c.txt', size: 3_000_000 },
  });
  t.match(await app.owner.put('/files/a', bytes, { headers: { 'content-type': 'text/plain' } }), { status: 415 });
  const large = Buffer.alloc(4_000_001, 7);
  t.match(await app.owner.put('/files/a', large), { status: 413, code: 'file_too_large' });
  const { hostname, port } = new URL(app.url);
  const chunked = request({
    hostname,
    port,
    path: '/files/x',
    method: 'PUT',
    headers: { 'content-type': 'application/octet-stream' },
  });
  chunked.on('error', () => {});
  chunked.end(Buffer.alloc(12_000_000));
  const [response] = await once(chunked, 'response');
  t.equal(response.statusCode, 413, 'without a declared length');
  response.resume();
  const after = await app.owner.put('/files/a', Buffer.alloc(0));
  t.match(after, { status: 201, data: { size: 0 } });
});

t.test('a connection serves the next request after an upload that was refused', async (t) => {
  const { hostname, port } = new URL(app.url);
  for (const how of ['before', 'midway']) {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.teardown(() => agent.destroy());
    for (const size of [1, 200_000, 900_000]) {
      const outgoing = request({
        ...{ hostname, port, agent, path: `/refused/${how}`, method: 'PUT' },
        headers: { 'content-type': 'application/octet-stream', 'content-length': size },
      });
      outgoing.end(Buffer.alloc(size));
      const [response] = await once(outgoing, 'response');
      t.equal(response.statusCode, 409);
      response.resume();
      await once(response, 'end');
    }
    const after = request({ hostname, port, agent, path: '/healthz' }).end();
    const [response] = await once(after, 'response');
    t.equal(response.statusCode, 200);
    response.resume();
  }
});

t.test('an upload that breaks off ends its handler', async (t) => {
  const before = app.logged.length;
  const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
  socket.write(
    'PUT /files/broken HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\ncontent-length: 100\r\n\r\nabc',
  );
  await new Promise((resolve) => setTimeout(resolve, 50));
  socket.destroy();
  const done = () => app.logged.slice(before).some((line) => JSON.stringify(line).includes('/files/broken'));
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 10));
  t.notMatch(app.logged.slice(before), [{ level: 'error' }], 'a client that goes away is no error of ours');
});

t.test('an upload that breaks off before anybody reads it fails for the reader, and ends no process', async (t) => {
  const before = app.logged.length;
  const socket = connect(Number(new URL(app.url).port), '127.0.0.1');
  socket.write(
    'PUT /read-late HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/octet-stream\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n',
  );
  // The handler has opened the body.
  await once(socket, 'data');
  socket.write('abc');
  socket.destroy();
  const lines = () => app.logged.slice(before);
  const line = await until('the handler reads', () => lines().find(({ msg }) => msg === 'read late'));
  t.match(line, { err: { message: 'the client went away while it sent its body' } });
  t.equal((await app.owner.fetch('/healthz')).status, 200);
});

t.test('streamed responses go out as they are made; a broken one is cut, not ended', async (t) => {
  const whole = await app.owner.fetch('/stream');
  t.equal(await whole.text(), '0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n');
  const broken = await app.owner.fetch('/stream?broken=true');
  await t.rejects(broken.text());
});
