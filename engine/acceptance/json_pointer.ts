/** RFC 6901: empty for the whole document, else `/` before each token, `~` only as `~0` or `~1`. */
export const JSON_POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/u;

const INDEX = /^(?:0|[1-9]\d*)$/;

export function pointerTokens(pointer: string): string[] {
  if (pointer === '') return [];
  const parts = pointer.slice(1).split('/');
  return parts.map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));
}

const SPACE = new Set([0x20, 0x09, 0x0a, 0x0d]);
const QUOTE = 0x22;
const BACKSLASH = 0x5c;

function skipSpace(text: string, at: number): number {
  let next = at;
  while (SPACE.has(text.charCodeAt(next))) next += 1;
  return next;
}

/** The place behind the string that begins at `at`. */
function skipString(text: string, at: number): number {
  for (let next = at + 1; ; next += 1) {
    next = text.indexOf('"', next);
    let slashes = 0;
    while (text.charCodeAt(next - 1 - slashes) === BACKSLASH) slashes += 1;
    // An even number of backslashes escape each other and not the quote.
    if (slashes % 2 === 0) return next + 1;
  }
}

/** The place behind the value that begins at `at`; a counter and no recursion, however deep it is nested. */
function skipValue(text: string, at: number): number {
  let depth = 0;
  let next = at;
  do {
    const char = text[next];
    if (char === '"') {
      next = skipString(text, next);
      continue;
    }
    if (char === '{' || char === '[') depth += 1;
    else if (char === '}' || char === ']') depth -= 1;
    else if (depth === 0) {
      // A number, true, false or null: up to what can follow a value.
      while (next < text.length && !/[\s,\]}]/.test(text[next] ?? '')) next += 1;
      return next;
    }
    next += 1;
  } while (depth > 0);
  return next;
}

function member(text: string, at: number, token: string): number {
  let found = -1;
  let next = skipSpace(text, at + 1);
  while (text.charCodeAt(next) === QUOTE) {
    const keyEnd = skipString(text, next);
    const raw = text.slice(next + 1, keyEnd - 1);
    const key = raw.includes('\\') ? JSON.parse(text.slice(next, keyEnd)) : raw;
    const value = skipSpace(text, skipSpace(text, keyEnd) + 1);
    // Of members with one name the last counts, as for JSON.parse.
    if (key === token) found = value;
    next = skipSpace(text, skipValue(text, value));
    if (text[next] === ',') next = skipSpace(text, next + 1);
  }
  return found;
}

function element(text: string, at: number, token: string): number {
  if (!INDEX.test(token)) return -1;
  const wanted = Number(token);
  let next = skipSpace(text, at + 1);
  for (let index = 0; text[next] !== ']'; index += 1) {
    if (index === wanted) return next;
    next = skipSpace(text, skipValue(text, next));
    if (text[next] === ',') next = skipSpace(text, next + 1);
  }
  return -1;
}

/**
 * The text of the value that `pointer` names, or null when there is none. `text` must be valid JSON (it was parsed
 * before). Looking in the text keeps numbers as they were written without building all of a large document a second time.
 */
export function locate(text: string, pointer: string): string | null {
  let at = skipSpace(text, 0);
  for (const token of pointerTokens(pointer)) {
    if (text[at] === '{') at = member(text, at, token);
    else if (text[at] === '[') at = element(text, at, token);
    else return null;
    if (at === -1) return null;
  }
  return text.slice(at, skipValue(text, at));
}
