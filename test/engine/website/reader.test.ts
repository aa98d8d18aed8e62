import type { RequestListener } from 'node:http';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { createPageReader, domainBlocker, type PageBytes } from '../../../engine/website/index.ts';
import { openForbidden, openSite, PUBLIC } from '../net/support.ts';
import { html, openClient, type Page, readAll } from './support.ts';

const client = openClient(t);

/** Pages by path; what has none is 404. */
function pages(sitePages: Readonly<Record<string, Page>>): RequestListener {
  return (req, res) => {
    const page = sitePages[new URL(req.url ?? '/', 'http://x').pathname];
    const {
      status = 200,
      headers = {},
      body = '',
    } = typeof page === 'string' ? { body: page } : (page ?? { status: 404 });
    res.writeHead(status, { 'content-type': 'text/html; charset=utf-8', ...headers }).end(body);
  };
}

t.test('a site is read from its start page on, in the order of its links', async (t) => {
  const site = await openSite(
    t,
    pages({
      '/': html('Home', ['/about', '/products', '/about#team', 'mailto:a@b', '/logo.png', 'https://other.example/']),
      '/about': html('About', ['/', '/people']),
      '/products': html('Products', ['/products/widget']),
      '/people': html('People'),
      '/products/widget': html('Widget'),
    }),
  );
  const read = await readAll(client, site.origin);
  t.same(read.addresses, ['/', '/about', '/products', '/people', '/products/widget']);
  t.match(read, { pages: 5, limit: null, warnings: [] });
  t.match(read.kept[1], { requestedUrl: `${site.origin}/about`, page: { title: 'About' } });
  t.same(site.paths, ['/robots.txt', '/', '/about', '/products', '/people', '/products/widget']);
});

t.test('at most twenty pages are read, or as many as there is room for', async (t) => {
  const site = await openSite(t, (req, res) => {
    if (req.url === '/robots.txt') return void res.writeHead(404).end();
    const turn = Number(new URL(req.url ?? '/', 'http://x').searchParams.get('page') ?? 0);
    const links = [1, 2, 3].map((step) => `/?page=${turn * 3 + step}`);
    res.setHeader('content-type', 'text/html').end(html(`Page ${turn}`, links, `${turn} `.repeat(1_000)));
  });
  t.match(await readAll(client, site.origin), { pages: 20, limit: 'pages', warnings: [] });
  const few = await readAll(client, site.origin, { limits: { bytes: 10_000 } });
  t.equal(few.limit, 'bytes');
  t.ok(few.pages >= 2 && few.pages <= 5, `${few.pages} pages`);
  const size = few.kept.reduce((sum, { raw }) => sum + raw.bytes.length, 0);
  t.ok(size <= 10_000, `${size} bytes`);
});

t.test('a site that drips ends with the time, and what was read stays', async (t) => {
  const site = await openSite(t, (req, res) => {
    if (req.url === '/robots.txt') return void res.writeHead(404).end();
    res.setHeader('content-type', 'text/html');
    if (req.url === '/') return void res.end(html('Home', ['/drip', '/more']));
    const timer = setInterval(() => res.write('.'), 20);
    res.once('close', () => clearInterval(timer));
  });
  const read = await readAll(client, site.origin, { limits: { totalMs: 5_000 } });
  t.match(read, { pages: 1, limit: 'time', warnings: [] });
  t.notOk(site.paths.includes('/more'));
});

t.test('robots.txt is respected', async (t) => {
  const sitePages: Record<string, Page> = {
    '/robots.txt': 'User-agent: *\nDisallow: /private\nAllow: /private/open\n\nUser-agent: other\nDisallow: /',
    '/': html('Home', ['/private', '/private/open', '/away']),
    '/private': html('Private'),
    '/private/open': html('Open'),
    '/away': { status: 302, headers: { location: '/private' } },
  };
  const site = await openSite(t, pages(sitePages));
  t.same((await readAll(client, site.origin)).addresses, ['/', '/private/open']);
  t.notOk(site.paths.includes('/private'), 'nor after a redirect');

  sitePages['/robots.txt'] = 'User-agent: BusinessRunner\nDisallow: /\n\nUser-agent: *\nAllow: /';
  const denied = await readAll(client, site.origin);
  t.match(denied, { pages: 0, warnings: [{ code: 'website_robots', url: site.origin }] });

  sitePages['/robots.txt'] = { status: 503 };
  t.match(await readAll(client, site.origin), {
    pages: 0,
    warnings: [
      { code: 'website_unreachable', message: /responds to \/robots\.txt with status 503, .* Try again later\.$/ },
    ],
  });
  sitePages['/robots.txt'] = { status: 302, headers: { location: '/robots.txt' } };
  t.match(await readAll(client, site.origin), {
    pages: 0,
    warnings: [
      { code: 'website_unreachable', message: /^The robots\.txt of \S+ cannot be read: .* redirects in a loop\.$/ },
    ],
  });
  sitePages['/robots.txt'] = { status: 403 };
  t.equal((await readAll(client, site.origin)).pages, 3, 'forbidden is none');
  sitePages['/robots.txt'] = `${'# filler\n'.repeat(60_000)}User-agent: *\nDisallow: /`;
  t.equal((await readAll(client, site.origin)).pages, 3, 'what lies beyond 500 KiB does not count');
});

t.test('rules that take minutes to match hold up nobody, and what they are about is not read', async (t) => {
  const rules = `Disallow: /${'*a'.repeat(40)}b$\n`.repeat(5_000);
  const long = `/${'a'.repeat(1_900)}`;
  const site = await openSite(
    t,
    pages({
      '/robots.txt': `User-agent: *\n${rules}`,
      '/': html('Home', [`${long}1`, `${long}2`, '/about']),
      '/about': html('About'),
    }),
  );
  // Of this thread's own time, which goes on when the machine is busy with something else, or stands still.
  let longest = 0;
  let last = process.threadCpuUsage();
  const watch = setInterval(() => {
    const { user, system } = process.threadCpuUsage(last);
    longest = Math.max(longest, (user + system) / 1_000);
    last = process.threadCpuUsage();
  }, 5);
  t.teardown(() => clearInterval(watch));
  t.same((await readAll(client, site.origin)).addresses, ['/', '/about']);
  t.ok(longest < 3_000, `nothing else was done for ${Math.round(longest)} ms`);
});

t.test('the pause that robots.txt asks for is kept, up to ten seconds', async (t) => {
  for (const [asked, pauseMs] of [
    ['0.05', 50],
    ['3600', 10_000],
    ['-1', 0],
    ['soon', 0],
  ] as const) {
    const site = await openSite(t, pages({ '/robots.txt': `User-agent: *\nCrawl-delay: ${asked}`, '/': html('Home') }));
    const reader = createPageReader({ client });
    t.equal(await reader.delayMs(site.origin), 0, 'nothing is known yet');
    await reader.open(site.origin, { maxBytes: 10_000, totalMs: 10_000 });
    t.equal(await reader.delayMs(`${site.origin}/a`), pauseMs, asked);
  }
});

t.test('pages that are other pages are kept once', async (t) => {
  const site = await openSite(
    t,
    pages({
      '/': html('Home', ['/index.html', '/a', '/b', '/moved', '/c']),
      '/index.html': html('Home', ['/index.html', '/a', '/b', '/moved', '/c']),
      '/a': html('A'),
      '/b': `<link rel="canonical" href="/a">${html('A, printed')}`,
      '/moved': { status: 301, headers: { location: '/a' } },
      '/c': html('C'),
    }),
  );
  t.same((await readAll(client, site.origin)).addresses, ['/', '/a', '/c']);
});

t.test('what is no page, or is broken, is passed over', async (t) => {
  const site = await openSite(
    t,
    pages({
      '/': html('Home', ['/pdf', '/missing', '/broken', '/image', '/notes', '/huge', '/last']),
      '/pdf': { headers: { 'content-type': 'application/pdf' }, body: '%PDF-1.7' },
      '/broken': { headers: { 'content-encoding': 'gzip' }, body: 'no gzip' },
      '/image': { headers: { 'content-type': 'image/png' }, body: '' },
      '/notes': { headers: { 'content-type': 'text/plain' }, body: 'plain notes' },
      '/huge': { body: Buffer.alloc(3 * 1024 * 1024, 'a') },
      '/last': html('Last'),
    }),
  );
  t.match(await readAll(client, site.origin), {
    addresses: ['/', '/notes', '/huge', '/last'],
    warnings: [],
    limit: null,
  });
});

t.test('a page over the limit is read up to it', async (t) => {
  const filler = 'ä'.repeat(3 * 1024 * 1024);
  const long = `<title>Long</title><p>Größe<a href="/next">next</a><!--xx${filler}-->`;
  const site = await openSite(
    t,
    pages({
      '/': html('Home', ['/long', '/zipped']),
      '/long': long,
      '/zipped': { headers: { 'content-encoding': 'gzip' }, body: gzipSync(long.replace('Long', 'Zipped')) },
      '/next': html('Next'),
    }),
  );
  const { addresses, kept } = await readAll(client, site.origin);
  t.same(addresses, ['/', '/long', '/zipped', '/next']);
  for (const { page, raw } of kept.slice(1, 3)) {
    t.match(
      page,
      { title: /Long|Zipped/, text: /Größe/ },
      'a character that was cut in two makes it no other encoding',
    );
    t.equal(raw.bytes.length, 2 * 1024 * 1024 - 1);
  }
});

t.test('a site that cannot be read is a warning that says why', async (t) => {
  const site = await openSite(
    t,
    pages({ '/pdf': { headers: { 'content-type': 'application/pdf' } }, '/500': { status: 500 } }),
  );
  const gone = await openSite(t, pages({}));
  await new Promise((resolve) => gone.server.close(resolve));
  for (const [website, code] of [
    [`${site.origin}/nothing`, 'website_unreachable'],
    [`${site.origin}/500`, 'website_unreachable'],
    [`${site.origin}/pdf`, 'website_not_a_page'],
    [gone.origin, 'website_unreachable'],
    ['http://127.0.0.1:8080/', 'website_refused'],
    ['http://169.254.169.254/latest/meta-data/', 'website_refused'],
    ['ftp://acme.example/', 'website_refused'],
    ['no address', 'website_refused'],
  ] as const) {
    const read = await readAll(client, website);
    t.match(read, { pages: 0, limit: null, warnings: [{ code, url: website, message: /\.$/ }] }, website);
  }
});

t.test('a site that shows its text by scripts alone is a warning, and its pages are kept', async (t) => {
  const site = await openSite(
    t,
    pages({ '/': '<title>App</title><body><div id=app></div><script src=/a.js></script>' }),
  );
  const read = await readAll(client, site.origin);
  t.match(read, { pages: 1, addresses: ['/'], warnings: [{ code: 'website_without_text', url: site.origin }] });
});

t.test('neither links nor redirects of pages leave the site, and none reaches a private address', async (t) => {
  const forbidden = await openForbidden(t);
  const other = await openSite(t, pages({ '/': html('Other') }));
  const targets = [`http://127.0.0.1:${forbidden.port}/`, `http://[::1]:${forbidden.port}/`, `${other.origin}/`];
  const redirects = targets.map((location, index) => [`/to/${index}`, { status: 302, headers: { location } }]);
  const site = await openSite(
    t,
    pages({
      '/': html('Home', [...targets, ...redirects.map(([path]) => String(path))]),
      ...Object.fromEntries(redirects),
    }),
  );
  t.same((await readAll(client, site.origin)).addresses, ['/']);
  t.equal(forbidden.connections() + other.connections(), 0);
});

t.test('the start page may lead elsewhere, and the site is where it ends', async (t) => {
  const real = await openSite(t, pages({ '/home': html('Real', ['/team']), '/team': html('Team') }));
  const old = await openSite(t, pages({ '/': { status: 301, headers: { location: `${real.origin}/home` } } }));
  t.same((await readAll(client, old.origin)).addresses, ['/home', '/team']);
  t.ok(real.paths.includes('/robots.txt'), 'whose robots.txt is read too');
});

t.test('blocked domains are not asked', async (t) => {
  const site = await openSite(t, pages({ '/': html('Home') }));
  const read = await readAll(client, site.origin, { blocked: domainBlocker([PUBLIC]) });
  t.match(read, { pages: 0, warnings: [{ code: 'website_blocked' }] });
  t.equal(site.connections(), 0);
  const blocked = domainBlocker(['Evil.example', '*.bad.example', '']);
  for (const host of ['evil.example', 'www.evil.example', 'evil.example.', 'bad.example', 'a.bad.example']) {
    t.ok(blocked(new URL(`https://${host}/`)), host);
  }
  for (const host of ['notevil.example', 'evil.example.org']) t.notOk(blocked(new URL(`https://${host}/`)), host);
});

t.test('what an earlier try has kept is not asked for again, and counts', async (t) => {
  const site = await openSite(
    t,
    pages({ '/': html('Changed', ['/c']), '/a': html('A'), '/b': html('B'), '/c': html('C') }),
  );
  const earlier = new Map<string, PageBytes>();
  for (const [path, body] of [
    ['/', html('Home', ['/a', '/b'])],
    ['/a', html('A', ['/c'])],
  ] as const) {
    const url = site.origin + path;
    earlier.set(url, { url, contentType: 'text/html', bytes: Buffer.from(body) });
  }
  const read = await readAll(client, site.origin, { recall: async (url) => earlier.get(url) ?? null });
  t.same(read.addresses, ['/', '/a', '/b', '/c']);
  t.equal(read.kept[0]?.page.title, 'Home');
  t.same(site.paths, ['/robots.txt', '/b', '/c']);
});

t.test('a page is kept before the next is asked for, and what cannot be kept ends the reading', async (t) => {
  const site = await openSite(t, pages({ '/': html('Home', ['/a', '/b']), '/a': html('A'), '/b': html('B') }));
  const full = new Error('the disk is full');
  const keep = async ({ requestedUrl }: { requestedUrl: string }) => {
    if (requestedUrl.endsWith('/a')) throw full;
  };
  await t.rejects(readAll(client, site.origin, { keep }), full);
  t.notOk(site.paths.includes('/b'));
});

t.test('the caller can stop it', async (t) => {
  const stop = new AbortController();
  const site = await openSite(t, (req, res) => {
    if (req.url === '/robots.txt') return void res.writeHead(404).end();
    stop.abort(new Error('stopped'));
    res.end();
  });
  await t.rejects(readAll(client, site.origin, { signal: stop.signal }), { message: 'stopped' });
});
