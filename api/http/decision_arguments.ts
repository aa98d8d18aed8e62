/** How much of the arguments of a decision is kept: characters of a text, members of a list or object, levels. */
type Limits = Readonly<{ text: number; members: number; levels: number }>;

const LIMITS: readonly Limits[] = [
  { text: 500, members: 100, levels: 8 },
  { text: 200, members: 40, levels: 6 },
  { text: 60, members: 20, levels: 4 },
];

/** As Postgres writes it, it is at most twice as long, and then still fits into its column. */
const MAX_BYTES = 8_000;

/** By characters: half of a pair is nothing that Postgres takes. */
function cutText(text: string, length: number): string {
  if (text.length <= length) return text;
  const kept = [...text.slice(0, 2 * length)].slice(0, length).join('');
  return kept.length < text.length ? `${kept}…` : text;
}

function cut(value: unknown, limits: Limits, level: number): unknown {
  if (typeof value === 'string') return cutText(value, limits.text);
  if (typeof value !== 'object' || value === null) return value;
  if (level === limits.levels) return '…';
  if (Array.isArray(value)) {
    const kept = value.slice(0, limits.members).map((one) => cut(one, limits, level + 1));
    return value.length > limits.members ? [...kept, '…'] : kept;
  }
  const entries = Object.entries(value).slice(0, limits.members);
  return Object.fromEntries(entries.map(([name, one]) => [cutText(name, 100), cut(one, limits, level + 1)]));
}

/** What the audit log keeps of a call: all of a usual one, and of a large one the beginnings of its parts. */
export function decisionArguments(value: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  for (const limits of LIMITS) {
    const kept = cut(value, limits, 0) as Readonly<Record<string, unknown>>;
    if (Buffer.byteLength(JSON.stringify(kept)) <= MAX_BYTES) return kept;
  }
  return { bytes: Buffer.byteLength(JSON.stringify(value)) };
}
