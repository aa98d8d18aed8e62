import t from 'tap';
import { QUOTE_CHARACTERS, quotePage, WITHOUT_TEXT } from '../../../engine/website/index.ts';

const quote = (main: string, fields: { title?: string; description?: string } = {}) =>
  quotePage({ title: null, description: null, main, ...fields });

t.test('a page is told by its title, its own description, and its main text', (t) => {
  t.same(quote('Lamps for kitchens.\nMade in Leeds.', { title: 'Lamp Studio', description: 'We make lamps.' }), {
    title: 'Lamp Studio',
    excerpt: 'We make lamps.',
    text: 'Lamps for kitchens.\nMade in Leeds.',
  });
  t.end();
});

t.test('without them its first line and first sentences are told', (t) => {
  const text = `Lamp Studio
Kitchens
We have made lamps for kitchens since 1912, all of them by hand. Each lamp takes a day. We have three shops!
And we ship to all of Europe, within a week or so. This is the fifth sentence of it.`;
  t.match(quote(text), {
    title: 'Lamp Studio',
    excerpt:
      'We have made lamps for kitchens since 1912, all of them by hand. Each lamp takes a day. We have three shops!',
    text,
  });
  t.match(quote('Menu\nShop'), { title: 'Menu', excerpt: 'Menu Shop' }, 'where there are no sentences, its lines');
  t.end();
});

t.test('a page without text says so', (t) => {
  t.same(quote(''), { title: null, excerpt: WITHOUT_TEXT, text: '' });
  t.same(quote('', { title: 'App' }), { title: 'App', excerpt: WITHOUT_TEXT, text: '' });
  t.end();
});

t.test('all of it is bounded, and no character is cut in two', (t) => {
  const long = quote(`${'word '.repeat(1_000)}end`);
  t.ok(long.text.length <= QUOTE_CHARACTERS);
  t.match(long.text, /word word…$/);
  t.ok(long.excerpt.length <= 400 && long.excerpt.endsWith('word…'));
  for (const odd of ['😀'.repeat(5_000), `a${'😀'.repeat(5_000)}`]) {
    const { title, excerpt, text } = quote(odd);
    for (const part of [title ?? '', excerpt, text]) {
      t.ok(part.isWellFormed() && part.endsWith('…'));
    }
    t.ok((title ?? '').length <= 120 && excerpt.length <= 400 && text.length <= QUOTE_CHARACTERS);
  }
  t.ok(quote('x', { description: 'd'.repeat(1_000) }).excerpt.length <= 400);
  t.end();
});
