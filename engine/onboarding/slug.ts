/** Room for a number behind it. */
const MAX_LENGTH = 58;

/** What a name leaves for a slug: letters without their marks, and digits, joined by hyphens; '' where nothing is left. */
export function slugOf(name: string): string {
  return name
    .normalize('NFKD')
    .replace(/[\p{M}'’]/gu, '')
    .toLowerCase()
    .replace(/ß/g, 'ss')
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_LENGTH)
    .replace(/^-|-$/g, '');
}
