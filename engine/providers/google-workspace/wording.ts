// What a person reads of a proposal.

/** All of them, as far as they fit; how many there are is said in any case. */
export function listed(items: readonly string[], max = 1_200): string {
  let text = '';
  for (const [index, item] of items.entries()) {
    const next = index === 0 ? item : `${text}, ${item}`;
    if (next.length > max && index > 0) return `${text} and ${items.length - index} more, which the arguments name`;
    text = next;
  }
  return text;
}

/** In the unit that people use. */
export function sizeText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  const units = ['kB', 'MB', 'GB'];
  let value = bytes / 1_000;
  let unit = 0;
  while (value >= 999.95 && unit < units.length - 1) {
    value /= 1_000;
    unit += 1;
  }
  return `${value.toFixed(1)} ${units[unit]}`;
}
