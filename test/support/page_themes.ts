/** The text of a page's own styles. */
function styleOf(html: string): string {
  return [...html.matchAll(/<style>([\s\S]*?)<\/style>/g)].map(([, style = '']) => style).join('\n');
}

/**
 * Why a page with a style of its own does not follow the theme of the system; undefined: it does. Each of its colours is one for
 * light and another for dark.
 */
export function themeProblem(html: string): string | undefined {
  const style = styleOf(html);
  if (!/^[^}]*\{ [^}]*color-scheme: light dark;/m.test(style)) return 'it says nowhere that it has both themes';
  const pairs = [...style.matchAll(/light-dark\((#[0-9a-f]+), (#[0-9a-f]+)\)/g)];
  if (!pairs.some(([, light, dark]) => light !== dark)) return 'it has no colors for two themes';
  const same = pairs.find(([, light, dark]) => light === dark)?.[0];
  if (same !== undefined) return `it has one color for two themes: ${same}`;
  const alone = /[:\s](#[0-9a-f]{3,8})\b/.exec(style.replaceAll(/light-dark\([^)]*\)/g, ''))?.[1];
  return alone === undefined ? undefined : `it has a color for one theme: ${alone}`;
}
