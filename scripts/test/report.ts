import type { FileResult } from './test_process.ts';

export type Totals = Readonly<{ passed: number; failed: number }>;

/**
 * Seconds that the files of a folder may take together in the short run, on a quiet machine of two cores, where two run at
 * a time: with the type check and lint beside them they add up to six minutes.
 */
export const BUDGET_S: Readonly<Record<string, number>> = {
  'test/api': 300,
  'test/engine': 60,
  'test/jobs': 60,
  'test/scripts': 90,
  'test/sql': 150,
  test: 30,
};

function indent(text: string): string {
  return text.replace(/^/gm, '    ');
}

/** One line for a file in which all is well; for another one every failure with what it printed. */
export function describe(result: FileResult, label: string): string {
  const { file, tap, crash, seconds, stderr } = result;
  const failed = tap.failures.length + (crash ? 1 : 0);
  const skipped = tap.skipped > 0 ? `, ${tap.skipped} skipped` : '';
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

export function slowest(results: readonly FileResult[], count = 10): string {
  const sorted = [...results].sort((a, b) => b.seconds - a.seconds).slice(0, count);
  const lines = sorted.map(({ file, seconds }) => `${seconds.toFixed(1).padStart(7)} s  ${file}`);
  return ['The slowest files:', ...lines].join('\n');
}

/** What the files of each folder took together, and may take. */
export function folders(results: readonly FileResult[]): string {
  const seconds = new Map<string, number>();
  for (const result of results) {
    const parts = result.file.split('/');
    const folder = parts.slice(0, parts.length > 2 ? 2 : 1).join('/');
    seconds.set(folder, (seconds.get(folder) ?? 0) + result.seconds);
  }
  const lines = [...seconds].sort().map(([folder, sum]) => {
    const budget = BUDGET_S[folder];
    const of = budget === undefined ? '' : ` of ${budget}${sum > budget ? ': over its budget' : ''}`;
    return `${sum.toFixed(0).padStart(7)} s  ${folder}${of}`;
  });
  return ['Seconds of the files together, two running at a time:', ...lines].join('\n');
}
