import t from 'tap';
import { isSameSite, readPage } from '../../../engine/website/index.ts';

const URL_OF_PAGE = 'https://acme.example/shop/index.html';

function read(body: string | Uint8Array, contentType = 'text/html; charset=utf-8') {
  return readPage({ url: URL_OF_PAGE, contentType, bytes: typeof body === 'string' ? Buffer.from(body) : body });
}

t.test('a page becomes title, description, text and links', async (t) => {
  const page = await read(`<!doctype html><html lang="en"><head>
    <title> Acme &amp; Sons
      &mdash; widgets</title><meta name="Description" content="Widgets  since 1912.">
    <link rel="canonical" href="/shop/"><style>p { color: red }</style><script>var secret = "<p>no</p>";</script></head>
    <body><nav><a href="/about">About</a> <a href='../contact#form'>Contact</a><a href="/about#team">Team</a></nav>
    <h1>Widgets</h1><p>Made in <b>Leeds</b>,<br>sold everywhere.</p>
    <table><tr><th>Size</th><th>Price</th></tr><tr><td>S</td><td>&euro; 3</td></tr></table>
    <noscript>Turn it on</noscript><svg><title>icon</title><text>no</text></svg><!-- a remark -->
    <a rel="nofollow" href="/login">Log in</a><a href="mailto:a@acme.example">Mail</a><a href="javascript:void 0">x</a>
    <a href="https://other.example/">Other</a><a href="http://user:secret@acme.example/">x</a><a>no href</a></body></html>`);
  t.equal(page.title, 'Acme & Sons — widgets');
  t.equal(page.description, 'Widgets since 1912.');
  t.equal(page.canonicalUrl, 'https://acme.example/shop/');
  t.same(page.links, ['https://acme.example/about', 'https://acme.example/contact', 'https://other.example/']);
  const lines = ['About ContactTeam', 'Widgets', 'Made in Leeds,', 'sold everywhere.', 'Size Price', 'S € 3'];
  t.same(page.text.split('\n').slice(0, -1), lines);
  t.notMatch(page.text, /secret|color|icon|Turn it on|remark/);
});

t.test('the main text leaves menus, banners and footers out, and a model reads them last', async (t) => {
  const around = (inner: string) => `<header><h1>Acme</h1></header><nav>About</nav><div role="Navigation x">Shop</div>
    ${inner}<aside>Related</aside><footer>Acme Ltd, Leeds</footer>`;
  const plain = await read(around('<p>Widgets since 1912.</p><article><header>Our mill</header> It turns.</article>'));
  t.equal(plain.main, 'Widgets since 1912.\nOur mill\nIt turns.');
  t.equal(plain.ordered, 'Widgets since 1912.\nOur mill\nIt turns.\nAcme\nAbout\nShop\nRelated\nAcme Ltd, Leeds');
  const main = await read(around('<p>Beside</p><main><p>Widgets<nav>On this page</nav> and more</p></main>'));
  t.equal(main.main, 'Widgets\nand more');
  t.match(main.ordered, /^Widgets\nand more\nAcme\nAbout\nShop\nBeside\nOn this page\n/);
  t.equal((await read('<main> </main><p>Text</p>')).main, 'Text', 'an empty one counts for nothing');
  const menu = await read('<nav>About</nav><footer>Leeds</footer>');
  t.match(menu, { main: 'About\nLeeds', ordered: 'About\nLeeds' }, 'a page of nothing else is that');
  t.match(await read('<form><p>All in one form</p></form>'), { main: 'All in one form' });
  t.match(await read('<div id=app></div><script>boot()</script>'), { text: '', main: '', ordered: '' });
  t.match(await read('Just text', 'text/plain'), { main: 'Just text', ordered: 'Just text' });
});

t.test('what is open when a page breaks off, or closed that was never open, misplaces nothing', async (t) => {
  t.equal((await read('<nav>Menu<p>still</nav></nav></div></p><p>Text')).main, 'Text');
  t.equal((await read('<footer>Leeds')).main, 'Leeds');
  t.equal((await read(`<nav>Menu</nav><p>Text${'<b>'.repeat(2_000)}deep`)).main, 'Textdeep');
});

t.test('canonical addresses of other sites, and odd ones, do not count', async (t) => {
  for (const href of ['https://evil.example/', 'javascript:1', '', ' ', 'http://[', 'https://acme.example:444/']) {
    t.equal((await read(`<link rel=canonical href="${href}">`)).canonicalUrl, null, href);
  }
  t.equal(
    (await read('<link rel=canonical href="https://www.acme.example/a">')).canonicalUrl,
    'https://www.acme.example/a',
  );
  t.equal((await read('<base href="/b/"><link rel=canonical href="c">')).canonicalUrl, 'https://acme.example/b/c');
});

t.test('links follow base, and a page may ask that none is followed', async (t) => {
  t.same((await read('<base href="https://acme.example/deep/"><a href="x">x</a>')).links, [
    'https://acme.example/deep/x',
  ]);
  t.same((await read('<meta name="robots" content="noindex, NoFollow"><a href="x">x</a>')).links, []);
  t.same((await read('<base href="data:,x"><a href="x">x</a>')).links, ['https://acme.example/shop/x']);
});

t.test('the charset is that of the header, of a BOM, of meta, or what fits', async (t) => {
  const latin = Buffer.from('<title>Caf\xe9</title>', 'latin1');
  t.equal((await read(latin, 'text/html; charset=iso-8859-1')).title, 'Café');
  t.equal((await read(latin, 'text/html')).title, 'Café', 'not UTF-8, so the old default');
  t.equal((await read('<title>Café 東京</title>', 'text/html')).title, 'Café 東京', 'UTF-8 without a word');
  const shiftJis = Buffer.concat([
    Buffer.from('<meta charset=shift_jis><title>'),
    Buffer.from([0x93, 0x8c, 0x8b, 0x9e]),
  ]);
  t.equal((await read(shiftJis, 'text/html')).title, '東京');
  const cyrillic = Buffer.concat([
    Buffer.from('<meta http-equiv="Content-Type" content="text/html; charset=windows-1251"><title>'),
    Buffer.from([0xcc, 0xe8, 0xf0]),
  ]);
  t.equal((await read(cyrillic, 'text/html')).title, 'Мир');
  const utf16 = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('<title>é</title>', 'utf16le')]);
  t.equal((await read(utf16, 'text/html; charset=utf-8')).title, 'é', 'a BOM wins');
  for (const odd of ['x-user-defined', 'replacement', 'no-such-thing', 'iso-2022-kr', '"']) {
    t.match(await read('<title>plain</title>', `text/html; charset=${odd}`), { url: URL_OF_PAGE }, odd);
  }
});

t.test('text never holds what Postgres or a terminal cannot', async (t) => {
  const page = await read('<title>a\0b&#0;&#xD800;c\u001b[31m\u202e</title><p>x\0y\u0007z&#xDFFF;\u200b</p>');
  for (const text of [page.title ?? '', page.text]) {
    t.ok(text.isWellFormed());
    t.notMatch(text, /[\0-\x09\x0b-\x1f\u202e\u200b]/);
  }
});

t.test('plain text is a page without links', async (t) => {
  t.match(await read('# Acme\n\n<b>not a tag</b> https://acme.example/a\n', 'text/plain'), {
    title: null,
    text: '# Acme\n\n<b>not a tag</b> https://acme.example/a',
    links: [],
  });
});

t.test('pages made to be slow or endless are read to a bound', async (t) => {
  const deep = `${'<div>'.repeat(200_000)}deep${'</i>'.repeat(100_000)}`;
  t.ok((await read(deep)).text.length <= 200_000);
  t.ok((await read('<p>word</p>'.repeat(100_000))).text.length <= 200_000);
  t.equal((await read('<a href=x>'.repeat(50_000))).links.length, 1);
  t.ok((await read(`<title>${'t'.repeat(1_000_000)}`)).title?.length === 300);
  t.ok((await read(`<a href="${'x'.repeat(5_000)}">`)).links.length === 0);
  for (const broken of ['<', '<a href="', '<!--', '<title>', '<![CDATA[', '</', '&#', '<p =\'">', '\ufeff', '']) {
    t.type((await read(broken)).text, 'string', broken);
  }
});

t.test('reading can be stopped', async (t) => {
  const bytes = Buffer.from('<p>word</p>'.repeat(100_000));
  const page = { url: URL_OF_PAGE, contentType: 'text/html', bytes };
  await t.rejects(readPage(page, AbortSignal.abort()), { name: 'AbortError' });
});

t.test('a site is a host, with or without www', async (t) => {
  const same = (a: string, b: string) => isSameSite(new URL(a), new URL(b));
  t.ok(same('https://acme.example/a', 'http://www.acme.example/b'));
  t.notOk(same('https://acme.example/', 'https://shop.acme.example/'));
  t.notOk(same('https://acme.example/', 'https://acme.example:8443/'));
  t.notOk(same('https://a.github.io/', 'https://b.github.io/'));
});
