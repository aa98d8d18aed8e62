const MAX_DEPTH = 5;
const MAX_FIELDS = 200;
const MAX_NAME_LENGTH = 200;
const MAX_ELEMENTS = 5;

function isPlain(value: unknown): value is Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return false;
  const prototype = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

/** Adds the dotted names of a document's fields. No value is kept; depth and number are bounded. */
export function addFieldNames(names: Set<string>, document: unknown, prefix = '', depth = 0): void {
  if (!isPlain(document) || depth >= MAX_DEPTH) return;
  for (const [name, value] of Object.entries(document)) {
    if (names.size >= MAX_FIELDS) return;
    const path = prefix + name;
    if (path.length > MAX_NAME_LENGTH) continue;
    names.add(path);
    const inside = Array.isArray(value) ? value.slice(0, MAX_ELEMENTS) : [value];
    for (const one of inside) addFieldNames(names, one, `${path}.`, depth + 1);
  }
}
