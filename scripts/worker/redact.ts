/** What takes the place of a token. */
const REDACTED = '[redacted]';

/** Shorter ones are words that anything may hold. */
const MIN_LENGTH = 16;

/** Tokens that a text of this run must not show; the longest first, as one may hold another. */
export function secretsOf(given: readonly (string | undefined)[]): readonly string[] {
  const known = given.filter((secret) => secret !== undefined && secret.length >= MIN_LENGTH);
  return [...new Set(known as string[])].sort((a, b) => b.length - a.length);
}

/** What a command may be given by its environment and must not show: values whose names say that they are secret, paths left out. */
export function secretValues(environment: NodeJS.ProcessEnv): (string | undefined)[] {
  const secret = /(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS?)$/i;
  return Object.entries(environment).flatMap(([name, value]) =>
    secret.test(name) && !value?.startsWith('/') ? [value] : [],
  );
}

export function redactText(text: string, secrets: readonly string[]): string {
  return secrets.reduce((clean, secret) => clean.replaceAll(secret, REDACTED), text);
}

/** The same for every text of a JSON value, names of members too. */
export function redact<T>(value: T, secrets: readonly string[]): T {
  return redacted(value, secrets) as T;
}

function redacted(value: unknown, secrets: readonly string[]): unknown {
  if (typeof value === 'string') return redactText(value, secrets);
  if (Array.isArray(value)) return value.map((one) => redacted(one, secrets));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => [redactText(name, secrets), redacted(inner, secrets)]),
  );
}

/** How many of the last characters may be the beginning of a token. */
function openEnd(text: string, secrets: readonly string[]): number {
  const longest = Math.min(text.length, Math.max(0, ...secrets.map((secret) => secret.length - 1)));
  for (let length = longest; length > 0; length -= 1) {
    const end = text.slice(-length);
    if (secrets.some((secret) => secret.length > length && secret.startsWith(end))) return length;
  }
  return 0;
}

/** Redacts a text that comes in pieces: what may be the beginning of a token waits for what follows. */
export function redactingStream(secrets: readonly string[]) {
  let held = '';
  return {
    next(piece: string): string {
      const text = redactText(held + piece, secrets);
      const open = openEnd(text, secrets);
      held = open === 0 ? '' : text.slice(-open);
      return open === 0 ? text : text.slice(0, -open);
    },
    end(): string {
      const rest = held;
      held = '';
      return rest;
    },
  };
}
