const WIDTH = 120;

/** A text longer than the column starts its comment two blanks on, instead of moving those of all other lines. */
export function beside(text: string, comment: string, column = 64): string {
  return comment === '' ? text : `${text.padEnd(column)}  -- ${comment}`;
}

/** What Postgres prints, on one line and shorter: casts and names that say nothing left out, types by their short names. */
export function flat(text: string): string {
  return text
    .replaceAll(/\s+/g, ' ')
    .replaceAll('timestamp with time zone', 'timestamptz')
    .replaceAll(/\( SELECT (app\.(\w+)\(\)) AS \2\)/g, '(SELECT $1)')
    .replaceAll('( SELECT', '(SELECT')
    .replaceAll(/('(?:[^']|'')*')::(?:text|jsonb)\b(?!\[)/g, '$1')
    .replaceAll(/\(([\w.]+)\)::text\b(?!\[)/g, '$1')
    .replaceAll(/\(([\w.]+) = ANY \(ARRAY\[([^\]]*)\]\)\)/g, '$1 IN ($2)')
    .trim();
}

/** The words on as many lines as they need; lines after the first are indented. */
export function wrapped(text: string, indent = '  ', width = WIDTH): string {
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= width) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(lines.length === 0 ? word : `${indent}${word}`);
  }
  return lines.join('\n');
}

export function commented(text: string): string {
  return wrapped(`-- ${text}`, '-- ');
}

export function heading(text: string): string {
  return `-- ${text} ${'─'.repeat(Math.max(3, WIDTH - 4 - text.length))}`;
}
