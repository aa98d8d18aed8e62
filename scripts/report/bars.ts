const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/**
 * A bar of `columns` at `largest`, in eighths of a column. What is more than nothing is seen: at least an eighth.
 */
export function bar(value: number, largest: number, columns: number): string {
  if (value <= 0 || largest <= 0) return '';
  const eighths = Math.max(1, Math.round((value / largest) * columns * 8));
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}

/** Two parts of one bar, `first` full and the rest shaded: the length of both together is that of their sum. */
export function splitBar(first: number, rest: number, largest: number, columns: number): string {
  if (first + rest <= 0 || largest <= 0) return '';
  const whole = Math.max(1, Math.round(((first + rest) / largest) * columns));
  // Neither part vanishes beside the other while there is room for both.
  const least = first > 0 ? 1 : 0;
  const most = rest > 0 && whole > least ? whole - 1 : whole;
  const full = Math.min(Math.max(Math.round((first / (first + rest)) * whole), least), most);
  return '█'.repeat(full) + '░'.repeat(whole - full);
}
