/** Deeper values overflow the stack of what walks them: Postgres, programs that read our responses, our own code. */
const MAX_DEPTH = 64;

/** A place in a JSON value: linked, so that a path is written out for a fault alone. */
type Place = Readonly<{ value: object; key: string; depth: number; parent: Place | undefined }>;

export type StorableFault = Readonly<{
  path: readonly string[];
  message: string;
  code: 'invalid_text' | 'too_big' | 'too_deep' | 'unrecognized_keys';
}>;
type Fault = Omit<StorableFault, 'path'>;

function pathTo(place: Place | undefined, key: string | undefined): readonly string[] {
  const path = key === undefined ? [] : [key];
  for (let at = place; at?.parent; at = at.parent) path.unshift(at.key);
  return path;
}

/** Why a text or number cannot be stored. */
function scalarFault(value: unknown): Fault | undefined {
  if (typeof value === 'string') {
    if (value.includes('\0')) return { message: 'must not hold a NUL character', code: 'invalid_text' };
    if (!value.isWellFormed()) return { message: 'holds half of a surrogate pair', code: 'invalid_text' };
  }
  if (typeof value === 'number' && !Number.isFinite(value))
    return { message: 'is too large a number', code: 'too_big' };
  return undefined;
}

function* entries(value: object): Generator<readonly [string, unknown]> {
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) yield [String(index), value[index]];
  } else {
    for (const key of Object.keys(value)) yield [key, (value as Record<string, unknown>)[key]];
  }
}

/**
 * The first thing in a JSON value that JSON allows and Postgres, or our own code, cannot take: NUL and broken surrogates in any
 * text, numbers that became infinite, nesting of more than 64 levels. Walks without recursion.
 * @param refuses why a key is refused, where it is
 */
export function storableFault(
  root: unknown,
  refuses: (key: string) => string | undefined = () => undefined,
): StorableFault | undefined {
  const alone = scalarFault(root);
  if (alone) return { path: [], ...alone };
  if (typeof root !== 'object' || root === null) return undefined;
  const pending: Place[] = [{ value: root, key: '', depth: 0, parent: undefined }];
  for (let place = pending.pop(); place; place = pending.pop()) {
    if (place.depth > MAX_DEPTH) {
      return { path: pathTo(place, undefined), message: `is nested deeper than ${MAX_DEPTH} levels`, code: 'too_deep' };
    }
    for (const [key, value] of entries(place.value)) {
      const refused = refuses(key);
      if (refused !== undefined) return { path: pathTo(place, key), message: refused, code: 'unrecognized_keys' };
      const wrongKey = scalarFault(key);
      if (wrongKey) return { path: pathTo(place, undefined), ...wrongKey };
      const wrong = scalarFault(value);
      if (wrong) return { path: pathTo(place, key), ...wrong };
      if (typeof value === 'object' && value !== null) {
        pending.push({ value, key, depth: place.depth + 1, parent: place });
      }
    }
  }
  return undefined;
}

/** Text from outside without what cannot be stored: NUL is removed, half of a surrogate pair becomes U+FFFD. */
export function storableText(text: string): string {
  return text.replaceAll('\0', '').toWellFormed();
}
