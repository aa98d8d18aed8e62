import { settings } from './settings.ts';

/** The settings as text for `--help`. */
export function settingsHelp(): string {
  const rows = Object.entries(settings).map(([name, setting]) => {
    const value = setting.default === undefined ? '' : ` (${setting.default})`;
    return `  ${name.padEnd(26)} ${setting.help}${value}`;
  });
  return ['Settings (environment):', ...rows, ''].join('\n');
}

/** The text of `.env.example`: `npm run docs -- write` writes it, a test compares them. */
export function envExample(): string {
  const rows = Object.entries(settings).map(
    ([name, setting]) => `# ${setting.help}\n#${name}=${setting.default ?? ''}`,
  );
  return `${rows.join('\n\n')}\n`;
}
