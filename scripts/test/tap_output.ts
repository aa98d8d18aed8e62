/** What a test file said on its standard output, in TAP 14: its named tests are the points that are not indented. */
export type TapResult = Readonly<{
  passed: number;
  /** What was not tried, subtests included, and why. */
  skipped: readonly Readonly<{ name: string; why: string }>[];
  /** Each with what it printed: the checks that failed and why. */
  failures: readonly Readonly<{ name: string; lines: readonly string[] }>[];
  /** Said how many tests there are, and as many came: a file that ends early does not do so. */
  complete: boolean;
}>;

const POINT = /^(not )?ok \d+(?: - (.*?))?\s*$/;
const PLAN = /^1\.\.(\d+)/;
const DIRECTIVE = /\s#\s*(skip|todo)\b/i;
const SKIPPED = /^\s*(?:not )?ok \d+(?: - (.*?))?\s#\s*(?:skip|todo)\b\s*(.*)$/i;
const TIME = / # time=[\d.]+m?s$/;
const PASSED_BELOW = /^\s+ok \d+/;

/** The TAP of a subtest, out of that of its parent. */
export function indentedTap(output: string): string {
  return output.replace(/^(?! {4}).*\n?/gm, '').replace(/^ {4}/gm, '');
}

/** Whether the output holds the point of that name, and so all that belongs to it. */
export function hasPoint(output: string, name: string): boolean {
  return output.split('\n').some((line) => POINT.exec(line)?.[2]?.replace(TIME, '') === name);
}

function skippedOf(line: string): TapResult['skipped'] {
  const [whole, name = '', why = ''] = SKIPPED.exec(line) ?? [];
  if (whole === undefined) return [];
  const [named, reason] = [name, why].map((text) => text.trim().replace(/\\([#\\])/g, '$1'));
  return [{ name: named || 'a test without a name', why: reason || 'no reason given' }];
}

export function readTap(output: string): TapResult {
  const failures: { name: string; lines: string[] }[] = [];
  const skipped: TapResult['skipped'][number][] = [];
  let [passed, points, planned] = [0, 0, -1];
  let block: string[] = [];
  let inDiagnostics = false;
  for (const line of output.split('\n')) {
    const failure = failures.at(-1);
    if (inDiagnostics) {
      failure?.lines.push(line);
      if (line === '  ...') inDiagnostics = false;
      continue;
    }
    skipped.push(...skippedOf(line));
    const point = POINT.exec(line);
    if (point) {
      points += 1;
      const name = (point[2] ?? '').replace(TIME, '');
      const tried = !DIRECTIVE.test(name);
      if (tried && point[1]) failures.push({ name, lines: block });
      else if (tried) passed += 1;
      block = [];
    } else if (line === '  ---' && failure && block.length === 0) {
      // Diagnostics of the point itself; those inside a test come with its block.
      inDiagnostics = true;
      failure.lines.push(line);
    } else if (PLAN.test(line)) {
      planned = Number(PLAN.exec(line)?.[1]);
    } else if (line !== '' && !PASSED_BELOW.test(line) && !/^(TAP version|# )/.test(line)) {
      block.push(line);
    }
  }
  return { passed, skipped, failures, complete: planned === points };
}
