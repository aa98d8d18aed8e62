import type { FileResult } from './test_process.ts';

export type Totals = Readonly<{ passed: number; failed: number }>;

/**
 * Seconds that the files of a folder may take together in the short run, on a quiet machine of two cores, where three run at
 * a time: 1,045 s of files, with the type check and lint beside them, make up six minutes.
 */
export const BUDGET_S: Readonly<Record<string, number>> = {
  'test/api': 450,
  'test/docs': 5,
  'test/e2e': 20,
  'test/engine': 95,
  'test/jobs': 55,
  'test/scripts': 95,
  'test/sql': 275,
  test: 50,
};

function indent(text: string): string {
  return text.replace(/^/gm, '    ');
}

/** One line for a file in which all is well; for another one every failure with what it printed. */
export function describe(result: FileResult, label: string): string {
  const { file, tap, crash, seconds, stderr } = result;
  const failed = tap.failures.length + (crash ? 1 : 0);
  const skipped = tap.skipped.length > 0 ? `, ${tap.skipped.length} skipped` : '';
  const counts = failed > 0 ? `${tap.passed} passed, ${failed} FAILED` : `${tap.passed} passed`;
  const lines = [`${failed > 0 ? '✗' : '✓'} ${file}${label}: ${counts}${skipped} (${seconds.toFixed(1)} s)`];
  for (const failure of tap.failures) lines.push(`  ✗ ${failure.name}`, indent(failure.lines.join('\n')));
  if (crash) lines.push(`  ✗ the file ${crash}`);
  if (failed > 0 && stderr) lines.push('  its standard error:', indent(stderr));
  return lines.join('\n');
}

export function totals(results: readonly FileResult[], failedChecks: number): Totals {
  const passed = results.reduce((sum, { tap }) => sum + tap.passed, 0);
  const failed = results.reduce((sum, { tap, crash }) => sum + tap.failures.length + (crash ? 1 : 0), failedChecks);
  return { passed, failed };
}

/** Every test that was not tried here, with its reason: it counts as neither passed nor failed. Empty where there is none. */
export function skips(results: readonly FileResult[]): string {
  const lines = results.flatMap(({ file, tap }) => tap.skipped.map(({ name, why }) => `  ${file}: ${name} (${why})`));
  return lines.length === 0 ? '' : [`${lines.length} skipped:`, ...lines].join('\n');
}

export function slowest(results: readonly FileResult[], count = 10): string {
  const sorted = [...results].sort((a, b) => b.seconds - a.seconds).slice(0, count);
  const lines = sorted.map(({ file, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${file}`);
  return ['The slowest files:', ...lines].join('\n');
}

/** What the files of each folder took together, and may take in the short run. */
export function folders(results: readonly FileResult[], full: boolean): string {
  const seconds = new Map<string, number>();
  for (const result of results) {
    const parts = result.file.split('/');
    const folder = parts.slice(0, parts.length > 2 ? 2 : 1).join('/');
    seconds.set(folder, (seconds.get(folder) ?? 0) + result.seconds);
  }
  const lines = [...seconds].sort().map(([folder, sum]) => {
    // With --full there are more rounds, and a second Postgres.
    const budget = full ? undefined : BUDGET_S[folder];
    const of = budget === undefined ? '' : ` of ${budget}${sum > budget ? ': over its budget' : ''}`;
    return `${sum.toFixed(0).padStart(7)} s  ${folder}${of}`;
  });
  return ['Seconds of the files together, several running at a time:', ...lines].join('\n');
}
