import type { Page } from './page.ts';

/** What is said of a page in a review and in the first context; the whole of it is the source. */
export const QUOTE_CHARACTERS = 2_000;
const EXCERPT_CHARACTERS = 400;
const EXCERPT_SENTENCES = 3;
const TITLE_CHARACTERS = 120;
/** Shorter lines are headings and labels more often than sentences. */
const SENTENCE_CHARACTERS = 40;

export type PageQuote = Readonly<{
  title: string | null;
  /** A few sentences, by which a person recognizes the page; of one without text that it has none. */
  excerpt: string;
  /** The beginning of its main text; empty where there is none. */
  text: string;
}>;

export const WITHOUT_TEXT = 'This page shows no text to those who do not run its scripts.';

/** The beginning of a text, cut after a word where it can be, with a sign that there is more. */
function beginning(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(0, max - 1);
  const end = Math.max(cut.lastIndexOf(' '), cut.lastIndexOf('\n'));
  return `${(end > max / 2 ? cut.slice(0, end) : cut).toWellFormed().trimEnd()}…`;
}

/** The first sentences of a text that are some, else its first lines. */
function sentences(text: string): string {
  const shown = text.slice(0, QUOTE_CHARACTERS).toWellFormed().split('\n');
  const told = shown.filter((line) => line.length >= SENTENCE_CHARACTERS);
  const source = (told.length > 0 ? told : shown).join(' ');
  const found = [...new Intl.Segmenter('en', { granularity: 'sentence' }).segment(source)].slice(0, EXCERPT_SENTENCES);
  return found
    .map(({ segment }) => segment)
    .join('')
    .trim();
}

/** The text of a page as people and the context see it: plain, never markup. */
export function quotePage({ title, description, main }: Pick<Page, 'title' | 'description' | 'main'>): PageQuote {
  const [first = ''] = main.split('\n', 1);
  const excerpt = description ?? sentences(main);
  return {
    title: title ?? (first === '' ? null : beginning(first, TITLE_CHARACTERS)),
    excerpt: excerpt === '' ? WITHOUT_TEXT : beginning(excerpt, EXCERPT_CHARACTERS),
    text: beginning(main, QUOTE_CHARACTERS),
  };
}
