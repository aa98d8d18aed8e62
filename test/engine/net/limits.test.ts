import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { brotliCompressSync, createGzip, gzipSync } from 'node:zlib';
import t from 'tap';
import { createWebClient, type WebRequest } from '../../../engine/net/index.ts';
import { until } from '../../support/wait.ts';
import { certificate, privateKey } from './certificate.ts';
import { allows, openSite, PUBLIC, refuses, textOf } from './support.ts';

const client = createWebClient({ allows, connectMs: 2_000 });
t.teardown(() => client.close());

const MIB = 1024 * 1024;

async function read(address: string, options?: WebRequest): Promise<string> {
  return textOf((await client.fetch(address, options)).body);
}

t.test('a response is a stream with its status and headers', async (t) => {
  const site = await openSite(t, (req, res) => {
    res.writeHead(404, { 'content-type': 'text/plain', 'x-agent': req.headers['user-agent'] });
    res.end(JSON.stringify(req.headers));
  });
  const response = await client.fetch(`${site.origin}/a?b#c`);
  t.equal(response.status, 404);
  t.equal(response.url.href, `${site.origin}/a?b`);
  t.match(response.headers, { 'content-type': 'text/plain', 'x-agent': /^BusinessRunner\// });
  const sent = JSON.parse(await textOf(response.body));
  t.notOk('cookie' in sent || 'authorization' in sent || 'referer' in sent);
  t.same(site.paths, ['/a?b']);
});

t.test('compressed responses are read', async (t) => {
  const site = await openSite(t, (req, res) => {
    const [encoding, bytes] = req.url === '/br' ? ['br', brotliCompressSync('hello')] : ['gzip', gzipSync('hello')];
    res.setHeader('content-encoding', encoding).end(bytes);
  });
  t.equal(await read(`${site.origin}/br`), 'hello');
  t.equal(await read(`${site.origin}/gzip`), 'hello');
});

t.test('an endless body ends at the limit, and its connection with it', async (t) => {
  let open = 0;
  const site = await openSite(t, (_req, res) => {
    open += 1;
    res.once('close', () => {
      open -= 1;
    });
    const write = () => {
      while (!res.destroyed && res.write(Buffer.alloc(64 * 1024))) {}
    };
    res.on('drain', write);
    write();
  });
  await refuses(t, read(site.origin, { maxBytes: MIB }), 'too_large', 'endless');
  await until('the connection is closed', () => open === 0);
});

t.test('a decompression bomb ends at the limit', async (t) => {
  const bombs: Record<string, [string, Buffer]> = {
    '/gzip': ['gzip', gzipSync(Buffer.alloc(64 * MIB))],
    '/br': ['br', brotliCompressSync(Buffer.alloc(16 * MIB))],
    '/twice': ['gzip, gzip', gzipSync(gzipSync(Buffer.alloc(64 * MIB)))],
  };
  const site = await openSite(t, (req, res) => {
    const [encoding, bytes] = bombs[req.url ?? ''] ?? ['', Buffer.alloc(0)];
    res.setHeader('content-encoding', encoding).end(bytes);
  });
  for (const name of ['/gzip', '/br']) {
    const response = await client.fetch(site.origin + name, { maxBytes: MIB });
    let bytes = 0;
    await refuses(
      t,
      (async () => {
        for await (const chunk of response.body) bytes += chunk.length;
      })(),
      'too_large',
      name,
    );
    t.ok(bytes <= MIB, `${bytes} bytes were given out`);
  }
  await refuses(t, read(`${site.origin}/twice`), 'bad_response', 'layers');
});

t.test('a bomb without an end is stopped while it is sent', async (t) => {
  const site = await openSite(t, (_req, res) => {
    res.setHeader('content-encoding', 'gzip');
    const gzip = createGzip({ level: 1 });
    gzip.pipe(res);
    const write = () => {
      while (!res.destroyed && gzip.write(Buffer.alloc(MIB))) {}
    };
    gzip.on('drain', write);
    write();
  });
  await refuses(t, read(site.origin, { maxBytes: MIB }), 'too_large', 'endless bomb');
});

t.test('what is cut off or broken is said', async (t) => {
  const site = await openSite(t, (req, res) => {
    const whole = gzipSync('hello '.repeat(1000));
    if (req.url === '/cut') res.setHeader('content-encoding', 'gzip').end(whole.subarray(0, whole.length - 12));
    else if (req.url === '/noise') res.setHeader('content-encoding', 'gzip').end('no gzip at all');
    else if (req.url === '/short') {
      res.writeHead(200, { 'content-length': 100 });
      res.write('ten bytes.');
      setImmediate(() => res.destroy());
    } else if (req.url === '/protocol') res.socket?.end('HTTP/9.9 what\r\n\r\n');
    else res.socket?.destroy();
  });
  for (const path of ['/cut', '/noise', '/protocol']) {
    await refuses(t, read(site.origin + path), 'bad_response', path);
  }
  for (const path of ['/short', '/gone']) await refuses(t, read(site.origin + path), 'unreachable', path);
});

t.test('long headers are refused', async (t) => {
  const site = await openSite(t, (_req, res) => res.setHeader('x-long', 'a'.repeat(64 * 1024)).end());
  await refuses(t, read(site.origin), 'too_large', 'headers');
});

t.test('silence ends before the headers and in the middle of the body', async (t) => {
  const site = await openSite(t, (req, res) => {
    if (req.url === '/body') res.write('begun');
  });
  await refuses(t, read(`${site.origin}/headers`, { idleMs: 100 }), 'timed_out', 'headers');
  await refuses(t, read(`${site.origin}/body`, { idleMs: 100 }), 'timed_out', 'body');
});

t.test('a drip is no silence, but the total time ends it', async (t) => {
  const site = await openSite(t, (_req, res) => {
    const timer = setInterval(() => res.write('.'), 20);
    res.once('close', () => clearInterval(timer));
  });
  await refuses(t, read(site.origin, { idleMs: 5_000, totalMs: 300 }), 'timed_out', 'total');
});

t.test('the total time covers all redirects', async (t) => {
  const site = await openSite(t, (req, res) => {
    setTimeout(() => res.writeHead(302, { location: `${req.url}x` }).end(), 150);
  });
  await refuses(t, read(site.origin, { totalMs: 400 }), 'timed_out', 'redirects');
});

t.test('cycles and long chains of redirects end, and their bodies are not read', async (t) => {
  const site = await openSite(t, (req, res) => {
    const [, kind, turn = '0'] = (req.url ?? '').split('/');
    const next = kind === 'cycle' ? (Number(turn) + 1) % 2 : Number(turn) + 1;
    const location = kind === 'short' && turn === '5' ? undefined : `/${kind}/${next}#${turn}`;
    res.writeHead(location === undefined ? 200 : 301, location === undefined ? {} : { location });
    // An endless body behind each redirect.
    if (location === undefined) return void res.end('arrived');
    const timer = setInterval(() => res.write('.'.repeat(1000)), 1);
    res.once('close', () => clearInterval(timer));
  });
  await refuses(t, read(`${site.origin}/cycle/0`), 'redirect_loop', 'cycle');
  await refuses(t, read(`${site.origin}/chain/0`), 'too_many_redirects', 'chain');
  t.equal(site.paths.filter((path) => path.startsWith('/chain')).length, 6);
  t.equal(await read(`${site.origin}/short/0`), 'arrived', 'five are followed');
});

t.test('each hop is asked for, and what was meant for one server is not sent to another', async (t) => {
  const seen: unknown[] = [];
  const other = await openSite(t, (req, res) => {
    seen.push(req.headers);
    res.end('other');
  });
  const site = await openSite(t, (req, res) => {
    seen.push(req.headers);
    res.writeHead(302, { location: req.url === '/' ? '/again' : `${other.origin}/` }).end();
  });
  const hops: string[] = [];
  const headers = { authorization: 'Bearer secret', 'x-key': 'secret', accept: 'text/html' };
  t.equal(await read(site.origin, { headers, beforeHop: (url) => void hops.push(url.href) }), 'other');
  t.same(hops, [`${site.origin}/`, `${site.origin}/again`, `${other.origin}/`]);
  t.match(seen, [headers, headers, { accept: 'text/html' }]);
  t.notMatch(JSON.stringify(seen[2]), /secret/);

  const no = new Error('not there');
  const beforeHop = (url: URL) => {
    if (url.host === new URL(other.origin).host) throw no;
  };
  await t.rejects(read(site.origin, { beforeHop }), no);
  t.equal(seen.length, 5, 'the other was not asked');
});

t.test('a POST is sent once, and follows nothing', async (t) => {
  const site = await openSite(t, (req, res) => {
    req.resume();
    res.writeHead(307, { location: '/elsewhere' }).end('moved');
  });
  const response = await client.fetch(site.origin, { method: 'POST', body: 'x' });
  t.equal(response.status, 307);
  t.equal(await textOf(response.body), 'moved');
  t.same(site.paths, ['/']);
});

t.test('the caller ends a request whenever it likes', async (t) => {
  const site = await openSite(t, (req, res) => {
    if (req.url === '/body') res.write('begun');
  });
  for (const path of ['/headers', '/body']) {
    const stop = new AbortController();
    const reading = read(site.origin + path, { signal: stop.signal });
    await until('it was asked', () => site.paths.includes(path));
    const reason = new Error('stopped');
    stop.abort(reason);
    await t.rejects(reading, reason, path);
  }
  await t.rejects(read(site.origin, { signal: AbortSignal.abort(new Error('before')) }), { message: 'before' });
});

t.test('leaving the loop early, or discarding, closes the connection', async (t) => {
  let open = 0;
  const site = await openSite(t, (_req, res) => {
    open += 1;
    res.once('close', () => {
      open -= 1;
    });
    res.write('begun');
  });
  const left = await client.fetch(site.origin);
  for await (const chunk of left.body) {
    t.equal(chunk.length, 5);
    break;
  }
  await until('closed', () => open === 0);
  const discarded = await client.fetch(site.origin);
  discarded.discard();
  await until('closed', () => open === 0);
});

t.test('who is not there is said to be unreachable', async (t) => {
  const site = await openSite(t, (_req, res) => res.end());
  site.server.close();
  await refuses(t, read(site.origin), 'unreachable', 'closed port');
});

t.test('certificates are verified for the name', async (t) => {
  const names: unknown[] = [];
  const server = createServer({ cert: certificate, key: privateKey }, (_req, res) => res.end('safe'));
  server.on('secureConnection', (socket) => names.push(socket.servername));
  server.listen(0, PUBLIC);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const resolve = async () => [PUBLIC];
  const trusting = createWebClient({ allows, resolve, ca: certificate });
  const usual = createWebClient({ allows, resolve });
  t.teardown(async () => {
    await Promise.all([trusting.close(), usual.close()]);
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });
  const response = await trusting.fetch(`https://shop.example:${port}/`);
  t.equal(await textOf(response.body), 'safe');
  t.same(names, ['shop.example'], 'the name is sent, not the address');
  await refuses(t, trusting.fetch(`https://other.example:${port}/`), 'tls_failed', 'another name');
  await refuses(t, trusting.fetch(`https://${PUBLIC}:${port}/`), 'tls_failed', 'an address');
  await refuses(t, usual.fetch(`https://shop.example:${port}/`), 'tls_failed', 'an unknown signer');
});
