/** The embedded Postgres cannot be used: one line that says why and, where possible, what to do. */
export class PostgresError extends Error {
  override name = 'PostgresError';
}

/** What to say where Postgres's own words tell that its disk is full. */
export function fullDisk(words: readonly string[]): string | undefined {
  const isFull = words.some((line) => /No space left on device|Disk quota exceeded/.test(line));
  return isFull ? 'there is no room on its disk (a new database takes about 100 MB)' : undefined;
}
