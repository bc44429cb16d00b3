// Writes THIRD-PARTY-LICENSES.txt: the licences of the packages in the image. A test compares it with the installed packages.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = 'THIRD-PARTY-LICENSES.txt';
const NOTICE = /^(?:licen[cs]e|copying|notice)(?:[.-].*)?$/i;
const RULE = '-'.repeat(80);

/** The text of the file, from the lock file and the installed packages of `root`. */
export function licenceNotices(root) {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'));
  // The image has neither development packages nor optional ones.
  const shipped = Object.entries(packages).filter(([path, entry]) => {
    return path !== '' && !entry.dev && !entry.optional && !entry.devOptional && !entry.peer && !entry.link;
  });
  const named = new Map(shipped.map(([path, entry]) => packageOf(root, path, entry)));
  const sorted = [...named].sort(([a], [b]) => (a < b ? -1 : 1));
  const list = sorted.map(([name, { licence }]) => `${name}: ${licence}`);
  const byText = new Map();
  for (const [name, { texts }] of sorted) {
    for (const text of texts) byText.set(text, [...(byText.get(text) ?? []), name]);
  }
  const parts = [...byText].map(([text, names]) => `${RULE}\n${names.join('\n')}\n\n${text}\n`);
  return `Licences of the packages that oddswire runs on. Made by \`npm run licences\`; do not edit.

${list.join('\n')}

The embedded Postgres of \`npm start\`, an optional package, has the PostgreSQL Licence.

${parts.join('\n')}`;
}

function packageOf(root, path, entry) {
  const folder = join(root, path);
  const { name, license, author } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  const files = readdirSync(folder).filter((file) => NOTICE.test(file));
  const texts = files.sort().map((file) => readFileSync(join(folder, file), 'utf8').replaceAll('\r\n', '\n').trim());
  const licence = entry.license ?? license ?? 'no licence named';
  const by = typeof author === 'string' ? author : author?.name;
  if (texts.length === 0)
    texts.push(`No licence text in the package; its package.json names ${licence}${by ? `, by ${by}` : ''}.`);
  return [`${name}@${entry.version}`, { licence, texts }];
}

if (import.meta.main ?? process.argv[1]?.endsWith('third-party-licences.mjs')) {
  writeFileSync(FILE, licenceNotices(process.cwd()));
}
