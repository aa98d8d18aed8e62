/** A text in a JSON value, and where it stands. */
export type PlacedText = Readonly<{ text: string; path: () => string }>;

type Place = Readonly<{ value: object; key: string; parent: Place | undefined }>;

function pathOf(place: Place | undefined, key?: string): string {
  const path = key === undefined ? [] : [key];
  for (let at = place; at?.parent; at = at.parent) path.unshift(at.key);
  return path.join('.');
}

/** Every text of a JSON value, names of members too; the path of such a name is that of what holds it. Without recursion. */
export function* textsOf(root: unknown): Generator<PlacedText> {
  if (typeof root === 'string') yield { text: root, path: () => '' };
  if (typeof root !== 'object' || root === null) return;
  const pending: Place[] = [{ value: root, key: '', parent: undefined }];
  for (let place = pending.pop(); place; place = pending.pop()) {
    const here = place;
    const named = !Array.isArray(here.value);
    for (const [key, value] of Object.entries(here.value)) {
      if (named) yield { text: key, path: () => pathOf(here) };
      if (typeof value === 'string') yield { text: value, path: () => pathOf(here, key) };
      else if (typeof value === 'object' && value !== null) pending.push({ value, key, parent: here });
    }
  }
}
