import type { FileResult } from './run_file.ts';

export type Totals = Readonly<{ passed: number; failed: number }>;

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
