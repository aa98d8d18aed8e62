import { carriesCredential } from '../../engine/credentials.ts';
import { redactText } from './redact.ts';

/** What people are shown of the standard error of a command that failed. */
const MAX_TAIL = 2_000;
/** Enough to find a token that begins before what is shown. */
const MAX_KEPT = 32_768;
const MAX_TOKEN = 4_096;

const KEY_BEGIN = /-----BEGIN [A-Z ]*PRIVATE KEY/;
const KEY_END = /-----END [A-Z ]*PRIVATE KEY/;
const REDACTED = '[redacted]';

/** Sequences that colour or move, which mean nothing outside of a terminal. */
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g;

/** Lines that carry a credential are left out, and a private key from its first line to its last. */
function withoutCredentials(lines: readonly string[]): string[] {
  const end = lines.findIndex((line) => KEY_END.test(line));
  const begin = lines.findIndex((line) => KEY_BEGIN.test(line));
  // Its beginning was cut off.
  let inside = end >= 0 && (begin < 0 || begin > end);
  return lines.map((line) => {
    if (KEY_BEGIN.test(line)) inside = true;
    const hidden = inside || carriesCredential(line);
    if (KEY_END.test(line)) inside = false;
    return hidden ? REDACTED : line;
  });
}

/** Keeps the end of what a command writes to its standard error, in a bounded space. */
export function errorTail() {
  let kept = '';
  let cut = false;
  const decoder = new TextDecoder();
  return {
    add(chunk: Buffer): void {
      const whole = kept + decoder.decode(chunk, { stream: true });
      cut ||= whole.length > MAX_KEPT;
      kept = whole.slice(-MAX_KEPT);
    },
    /** The last 2,000 characters without what is secret. */
    text(secrets: readonly string[]): string {
      const plain = redactText(kept, secrets).replace(ESCAPES, '').replaceAll('\r\n', '\n');
      // Half of a token at the cut would not be known for one.
      const sound = cut ? plain.slice(MAX_TOKEN) : plain;
      const lines = sound
        .replace(/[^\P{Cc}\n\t]/gu, ' ')
        .split('\n')
        .map((line) => line.trimEnd());
      return withoutCredentials(lines).join('\n').trim().slice(-MAX_TAIL).toWellFormed();
    },
  };
}

export type ErrorTail = ReturnType<typeof errorTail>;
