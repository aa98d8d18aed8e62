/** How many characters have to be typed, left out or changed to make one word of the other. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (const [j, other] of [...b].entries()) {
      next.push(Math.min((row[j + 1] ?? 0) + 1, (next[j] ?? 0) + 1, (row[j] ?? 0) + (letter === other ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}

/** The word that somebody may have meant; undefined where more than `most` characters differ from each. */
export function nearest(
  word: string,
  words: readonly string[],
  most = Math.max(2, word.length / 3),
): string | undefined {
  const [best] = words
    .map((other) => ({ other, away: distance(word, other) }))
    .sort((one, another) => one.away - another.away);
  return best && best.away <= most ? best.other : undefined;
}
