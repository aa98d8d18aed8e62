import { readFileSync } from 'node:fs';
import { z } from 'zod';
import { type Receipt, readKeySet, readReceipt, repeatsNames, verifyReceipt } from '../../engine/receipts/index.ts';
import { plain } from '../terminal.ts';
import { decidedBy } from './action_text.ts';
import { CommandError, EXIT, type Exit, usageError } from './errors.ts';
import type { Called } from './options.ts';
import { fieldLines, type Output } from './output.ts';

/** @throws CommandError */
function readJson(file: string): unknown {
  let text: string;
  try {
    text = readFileSync(file === '-' ? 0 : file, 'utf8');
  } catch (error) {
    throw new CommandError(EXIT.notFound, `${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new CommandError(EXIT.data, `${file} is no JSON`);
  }
  if (repeatsNames(text)) throw new CommandError(EXIT.data, `${file} names a member twice`);
  return value;
}

// What is shown of a receipt; whatever it says was signed.
const shownSchema = z.object({
  action: z.looseObject({ id: z.string(), organizationId: z.string(), summary: z.string() }),
  decision: z.looseObject({ outcome: z.string(), by: z.string(), at: z.string() }).nullable(),
  result: z.looseObject({ status: z.string(), endedAt: z.string() }),
});

function printReceipt(output: Output, receipt: Receipt): void {
  output.line('valid', 'green');
  const print = (name: string, text: string) => {
    for (const line of fieldLines(name, plain(text), output.columns)) output.line(line);
  };
  print('key', receipt.keyId);
  const { data } = shownSchema.safeParse(receipt);
  if (!data) return;
  const { action, decision, result } = data;
  print('action', `${action.id} of the organization ${action.organizationId}`);
  print('does', action.summary);
  if (decision) print('decision', `${decision.outcome} by ${decidedBy(decision.by)}, ${decision.at}`);
  print('result', `${result.status}, ${result.endedAt}`);
}

/**
 * Checks a receipt by a file of public keys, and nothing else.
 * @throws CommandError that says what is wrong with it
 */
export function receiptVerify(output: Output, { args: [file = ''], values }: Called): Exit {
  if (values.keys === undefined) throw usageError('receipt verify: --keys FILE is missing');
  if (file === '-' && values.keys === '-') throw usageError('receipt verify: one of the files may be -, not both');
  const receipt = readReceipt(readJson(file));
  if (!receipt) throw new CommandError(EXIT.data, `${file} is no receipt of an action`);
  const keys = readKeySet(readJson(values.keys));
  if (!keys) throw new CommandError(EXIT.data, `${values.keys} is no set of keys (JWK)`);
  const verdict = verifyReceipt(receipt, keys);
  if (verdict === 'unknown_key') {
    throw new CommandError(EXIT.notFound, `the key ${receipt.keyId} is not in ${values.keys}: nothing is known of it`);
  }
  if (verdict === 'wrong_signature') {
    throw new CommandError(EXIT.refused, `not valid: ${file} is not what the key ${receipt.keyId} has signed`);
  }
  if (output.json) output.value(receipt);
  else printReceipt(output, receipt);
  return EXIT.done;
}
